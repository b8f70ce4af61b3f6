//! `kafila event …`

use proto::v1;
use service_kit::Backoff;

use crate::args::event::Stream;
use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;
use crate::{json, render};

/// How often in a row a stream that broke is opened again, and the waits in between: as patient as
/// the monitor.
const MAX_RETRIES: u32 = 10;
const BACKOFF: (std::time::Duration, std::time::Duration) = (
    std::time::Duration::from_secs(1),
    std::time::Duration::from_secs(12),
);

pub(super) async fn stream(context: &Context, args: &Stream) -> Result<Exit, Error> {
    let filters: Vec<_> = args.topics.iter().map(|topic| filter(topic)).collect();
    let mut backoff = Backoff::new(BACKOFF.0, BACKOFF.1);
    let mut rng = context.connection.ids().rng();
    let mut position = Position {
        index: args.index,
        began: false,
    };
    let mut retries = 0;
    loop {
        let broke = follow(context, args, &filters, &mut position).await;
        let error = match broke {
            Ok(()) => None,
            Err(error) if error.is_transient() => Some(error),
            Err(error) => return Err(error),
        };
        if position.began {
            position.began = false;
            retries = 0;
            backoff.reset();
        } else if retries == 0 || retries >= MAX_RETRIES {
            // It was not there in the first place, or did not come back.
            return error.map_or(Ok(Exit::Success), Err);
        }
        retries += 1;
        tokio::time::sleep(backoff.next(&mut rng)).await;
    }
}

/// Where a stream is taken up again.
struct Position {
    /// The next index to be told; 0: whatever comes now.
    index: u64,
    /// Something has come since it was last opened.
    began: bool,
}

async fn follow(
    context: &Context,
    args: &Stream,
    filters: &[v1::EventFilter],
    position: &mut Position,
) -> Result<(), Error> {
    let connection = &context.connection;
    let mut stream = connection.events(filters.to_vec(), position.index).await?;
    while let Some(batch) = connection.next_event(&mut stream).await? {
        if !batch.events.is_empty() {
            let text = if args.json {
                json::event::line(&batch)
            } else {
                render::event::lines(&batch, &context.style(args.verbose))
            };
            context.printer.out(&text)?;
        }
        position.index = batch.index + 1;
        position.began = true;
    }
    Ok(())
}

/// Reads `TOPIC` or `TOPIC:KEY`; the gateway knows which topics there are.
fn filter(text: &str) -> v1::EventFilter {
    let (topic, key) = text.split_once(':').unwrap_or((text, ""));
    v1::EventFilter {
        topic: topic.to_owned(),
        key: key.to_owned(),
    }
}
