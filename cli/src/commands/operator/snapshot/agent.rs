//! `kafila operator snapshot agent`: saves, deletes old snapshots, and waits.

use std::path::Path;

use tokio::signal::unix::{SignalKind, signal};

use super::save::{now, save};
use super::schedule::{delay, expired, file_name};
use crate::args::operator::snapshot::Agent;
use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;

pub(super) async fn run(context: &Context, args: &Agent) -> Result<Exit, Error> {
    let mut terminated =
        signal(SignalKind::terminate()).map_err(|error| Error::Start(Box::new(error)))?;
    tokio::select! {
        ended = save_always(context, args) => ended,
        _ = tokio::signal::ctrl_c() => Ok(Exit::Success),
        _ = terminated.recv() => Ok(Exit::Success),
    }
}

async fn save_always(context: &Context, args: &Agent) -> Result<Exit, Error> {
    let mut failures = 0_u32;
    loop {
        let names = names(&args.dir)?;
        let pause = delay(&names, now(context), args.interval, failures);
        tokio::time::sleep(pause).await;
        let path = args.dir.join(file_name(now(context)));
        match save(context, &path).await {
            Ok(saved) => {
                failures = 0;
                context.printer.out(&format!(
                    "Saved revision {} into {}",
                    saved.contents.revision,
                    path.display()
                ))?;
                delete_expired(context, args)?;
            }
            Err(error) => {
                failures = failures.saturating_add(1);
                let line = format!("{error}\nThe agent tries again ({failures} failed in a row).");
                context.printer.err(&line);
            }
        }
    }
}

/// Deletes old snapshots. A file that cannot be deleted is reported and left.
fn delete_expired(context: &Context, args: &Agent) -> Result<(), Error> {
    for name in expired(&names(&args.dir)?, args.retain) {
        let path = args.dir.join(name);
        if let Err(error) = std::fs::remove_file(&path) {
            let line = format!("Error deleting snapshot {}: {error}", path.display());
            context.printer.err(&line);
        }
    }
    Ok(())
}

/// Returns the names of the files in a directory.
fn names(dir: &Path) -> Result<Vec<String>, Error> {
    let failed = |error: std::io::Error| {
        let shown = dir.display();
        Error::text(format!("Error reading directory {shown}: {error}"))
    };
    let mut names = Vec::new();
    for entry in std::fs::read_dir(dir).map_err(failed)? {
        if let Ok(name) = entry.map_err(failed)?.file_name().into_string() {
            names.push(name);
        }
    }
    Ok(names)
}
