//! `kafila alloc status`

use proto::v1;

use crate::args::alloc::Status;
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
    show(context, &alloc, args.verbose, args.short, args.json).await
}

/// Shows one allocation.
pub(crate) async fn show(
    context: &Context,
    alloc: &v1::Allocation,
    verbose: bool,
    short: bool,
    json: bool,
) -> Result<Exit, Error> {
    let text = if json {
        pretty(&json::alloc::Allocation::from(alloc))
    } else {
        let job = job_of(&context.connection, alloc).await?;
        let status = render::alloc::Status {
            alloc,
            job: job.as_ref(),
            short,
        };
        status.render(&context.style(verbose))
    };
    context.printer.out(&text)?;
    Ok(Exit::Success)
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
