//! `kafila event …`

use proto::v1;

use crate::args::event::Stream;
use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;
use crate::retries::{self, MAX_RETRIES};
use crate::{json, render};

pub(super) async fn stream(context: &Context, args: &Stream) -> Result<Exit, Error> {
    let filters = args.topics.iter().map(|topic| filter(topic));
    let filters = filters.collect::<Result<Vec<_>, _>>()?;
    let mut backoff = retries::backoff();
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
            // The first connection failed, or the retries are exhausted.
            return error.map_or(Ok(Exit::Success), Err);
        }
        retries += 1;
        tokio::time::sleep(backoff.next(&mut rng)).await;
    }
}

/// The position at which a stream resumes.
struct Position {
    /// The next index; 0: only new events.
    index: u64,
    /// A batch arrived since the last opening.
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

/// Parses `TOPIC` or `TOPIC:KEY`; the gateway validates the topic.
///
/// # Errors
/// The key is empty, probably an unset variable of a script.
fn filter(text: &str) -> Result<v1::EventFilter, Error> {
    let (topic, key) = match text.split_once(':') {
        Some((topic, "")) => {
            return Err(Error::text(format!(
                "Error streaming events: -topic {text} has an empty key.\n\
                 Add the key, or leave out the colon for all events of {topic}."
            )));
        }
        Some(both) => both,
        None => (text, ""),
    };
    Ok(v1::EventFilter {
        topic: topic.to_owned(),
        key: key.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_topic_may_have_a_key_and_then_not_an_empty_one() {
        let read = |text: &str| filter(text).map(|it| (it.topic, it.key)).ok();
        let pair = |topic: &str, key: &str| Some((topic.to_owned(), key.to_owned()));
        assert_eq!(read("Job"), pair("Job", ""));
        assert_eq!(read("Job:a:b"), pair("Job", "a:b"));
        let error = filter("Job:").unwrap_err().to_string();
        assert!(error.contains("-topic Job: has an empty key"), "{error}");
    }
}
