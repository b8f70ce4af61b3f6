//! `kafila job inspect`

use proto::v1;

use crate::args::job::Inspect;
use crate::context::Context;
use crate::diagnostic;
use crate::error::Error;
use crate::exit::Exit;
use crate::json;
use crate::output::json::pretty;
use crate::resolve;

pub(crate) async fn run(context: &Context, args: &Inspect) -> Result<Exit, Error> {
    let connection = &context.connection;
    let stub = resolve::job(connection, &args.id, &context.style_err(false)).await?;
    let found = connection
        .job(&stub.namespace, &stub.id, args.version)
        .await?;
    let job = to_json(found.job)?;
    context.printer.out(&pretty(&json::job::Wrapped { job }))?;
    Ok(Exit::Success)
}

/// Returns a stored job as JSON has it.
pub(super) fn to_json(job: v1::Job) -> Result<json::job::Job, Error> {
    json::job::Job::try_from(job).map_err(|errors| {
        Error::text(format!(
            "Error reading the gateway's answer: is it newer than this command?\n{}",
            diagnostic::fields(&errors)
        ))
    })
}
