//! `kafila monitor`

use proto::v1;

use crate::args::monitor::Monitor;
use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;
use crate::retries::{self, MAX_RETRIES};
use crate::{json, render};

pub(super) async fn run(context: &Context, args: &Monitor) -> Result<Exit, Error> {
    let mut request = v1::MonitorRequest {
        target: Some(args.target.to_wire()),
        filter: args.log_level.clone(),
        recent: args.recent,
        recent_only: false,
    };
    let mut backoff = retries::backoff();
    let mut rng = context.connection.ids().rng();
    let mut retries = 0;
    let mut has_begun = false;
    loop {
        let mut read = 0_u64;
        let broke = follow(context, args, &request, &mut has_begun, &mut read).await;
        let error = match broke {
            Ok(()) => None,
            Err(error) if error.is_transient() && has_begun => Some(error),
            Err(error) => return Err(error),
        };
        if read > 0 {
            retries = 0;
            backoff.reset();
        }
        if retries >= MAX_RETRIES {
            return error.map_or(Ok(Exit::Success), Err);
        }
        if retries == 0 {
            let note = "The stream broke: opening it again. Lines in between may be missing.";
            context.printer.err(note);
        }
        retries += 1;
        // Another process may lead now: its recent lines are not the continuation.
        request.recent = 0;
        tokio::time::sleep(backoff.next(&mut rng)).await;
    }
}

async fn follow(
    context: &Context,
    args: &Monitor,
    request: &v1::MonitorRequest,
    has_begun: &mut bool,
    read: &mut u64,
) -> Result<(), Error> {
    let connection = &context.connection;
    let mut stream = connection.monitor(request.clone()).await?;
    *has_begun = true;
    while let Some(batch) = connection.next_log_lines(&mut stream).await? {
        *read += 1;
        if batch.dropped > 0 {
            let dropped = batch.dropped;
            context
                .printer
                .err(&format!("Dropped {dropped} lines: reading is too slow."));
        }
        let lines = batch.lines.iter().map(|line| {
            if args.log_json {
                json::log::line(line, args.log_include_location)
            } else {
                render::log::line(line, args.log_include_location, context.printer.colour)
            }
        });
        let lines: Vec<String> = lines.collect();
        if !lines.is_empty() {
            context.printer.out(&lines.join("\n"))?;
        }
    }
    Ok(())
}
