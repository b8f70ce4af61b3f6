//! `kafila alloc status`

use proto::v1;

use crate::args::alloc::Status;
use crate::commands::job::inspect::to_json;
use crate::connection::Connection;
use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;
use crate::json;
use crate::output::json::pretty;
use crate::render;
use crate::resolve;

pub(crate) async fn run(context: &Context, args: &Status) -> Result<Exit, Error> {
    let style = context.style_err(args.verbose);
    let alloc = resolve::allocation(&context.connection, &args.id, &style).await?;
    let shown = Shown {
        verbose: args.verbose,
        short: args.short,
        json: args.json,
        stats: args.stats,
    };
    show(context, &alloc, shown).await
}

/// The form in which an allocation is shown.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Shown {
    pub(crate) verbose: bool,
    pub(crate) short: bool,
    pub(crate) json: bool,
    pub(crate) stats: bool,
}

/// Shows one allocation.
pub(crate) async fn show(
    context: &Context,
    alloc: &v1::Allocation,
    shown: Shown,
) -> Result<Exit, Error> {
    let job = job_of(&context.connection, alloc).await?;
    if shown.json {
        let job = job.map(to_json).transpose()?;
        let object = json::alloc::Allocation::new(alloc, job.as_ref());
        return context.finish(&pretty(&object));
    }
    let status = render::alloc::Status {
        alloc,
        job: job.as_ref(),
        short: shown.short,
    };
    let style = context.style(shown.verbose);
    let mut text = status.render(&style);
    if shown.stats {
        // The known facts are shown, whether or not the node answers.
        let body = match context.connection.allocation_stats(&alloc.id, "").await {
            Ok(stats) => render::usage::tasks(&stats),
            Err(error) => format!("{error}\n"),
        };
        text.push_str(&style.section("Resource Utilization", &body));
    }
    context.finish(&text)
}

/// Returns the job version of an allocation; `None` if it was deleted.
pub(super) async fn job_of(
    connection: &Connection,
    alloc: &v1::Allocation,
) -> Result<Option<v1::Job>, Error> {
    let version = Some(alloc.job_version);
    match connection
        .job(&alloc.namespace, &alloc.job_id, version)
        .await
    {
        Ok(found) => Ok(Some(found.job)),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error),
    }
}
