//! `kafila action` and `kafila job action`

use proto::v1;

use super::alloc::{exec, target};
use crate::args::action::Action;
use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;
use crate::resolve;

pub(super) async fn run(context: &Context, args: &Action) -> Result<Exit, Error> {
    let style = context.style_err(false);
    let alloc = match (&args.alloc, &args.job) {
        (Some(id), job) => {
            let alloc = resolve::allocation(&context.connection, id, &style).await?;
            if let Some(job) = job.as_ref().filter(|job| **job != alloc.job_id) {
                return Err(Error::text(format!(
                    "Allocation {} is one of job {:?}, not of {job:?}: leave out -job or -alloc",
                    style.id(&alloc.id),
                    alloc.job_id
                )));
            }
            alloc
        }
        (None, job) => {
            let job = job.as_deref().unwrap_or_default();
            target::of_job(context, job, args.group.as_deref()).await?
        }
    };
    let start = v1::ExecStart {
        alloc_id: alloc.id,
        task: args.task.clone().unwrap_or_default(),
        action: args.name.clone(),
        ..v1::ExecStart::default()
    };
    let session = exec::Session {
        interactive: args.interactive,
        terminal: args.terminal,
        escape: args.escape,
    };
    session.run(context, async || Ok(start)).await
}
