//! `kafila operator snapshot agent`: saves, deletes old snapshots, and waits.

use tokio::signal::unix::{SignalKind, signal};

use super::save::now;
use super::schedule::{delay, expired, file_name};
use super::store::Store;
use super::target::Target;
use crate::args::operator::snapshot::Agent;
use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;

pub(super) async fn run(context: &Context, args: &Agent) -> Result<Exit, Error> {
    let target = match (&args.dir, &args.s3) {
        (_, Some(location)) => {
            let store = Store::new(location.clone(), &args.settings);
            Target::Bucket(Box::new(store))
        }
        (Some(directory), None) => Target::Directory(directory.clone()),
        (None, None) => return Err(Error::text("Error: -dir or -s3 is missing.".to_owned())),
    };
    let mut terminated =
        signal(SignalKind::terminate()).map_err(|error| Error::Start(Box::new(error)))?;
    tokio::select! {
        ended = save_always(context, args, &target) => ended,
        _ = tokio::signal::ctrl_c() => Ok(Exit::Success),
        _ = terminated.recv() => Ok(Exit::Success),
    }
}

async fn save_always(context: &Context, args: &Agent, target: &Target) -> Result<Exit, Error> {
    let mut failures = 0_u32;
    let mut names = target.names().await?;
    loop {
        let pause = delay(&names, now(context), args.interval, failures);
        tokio::time::sleep(pause).await;
        let name = file_name(now(context));
        match target.save(context, &name).await {
            Ok(saved) => {
                failures = 0;
                context.printer.out(&format!(
                    "Saved revision {} into {}",
                    saved.contents.revision,
                    target.shown(&name)
                ))?;
                names.push(name);
                delete_expired(context, args, target, &mut names).await;
            }
            Err(error) => {
                failures = failures.saturating_add(1);
                let line = format!("{error}\nThe agent tries again ({failures} failed in a row).");
                context.printer.err(&line);
            }
        }
    }
}

/// Deletes old snapshots, and updates `names`. What fails is reported, and done after the next snapshot:
/// the snapshot that was saved counts.
async fn delete_expired(context: &Context, args: &Agent, target: &Target, names: &mut Vec<String>) {
    match target.names().await {
        Ok(found) => *names = found,
        Err(error) => {
            let line = format!("{error}\nOld snapshots are deleted after the next one.");
            context.printer.err(&line);
            return;
        }
    }
    for name in expired(names, args.retain) {
        if let Err(error) = target.delete(&name).await {
            let line = format!("Error deleting snapshot {}: {error}", target.shown(&name));
            context.printer.err(&line);
        }
    }
}
