//! `kafila job inspect`

use proto::v1;

use crate::args::job::Inspect;
use crate::context::Context;
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
    context.finish(&pretty(&json::job::Wrapped { job }))
}

/// Checks that a stored job can be written as JSON.
pub(crate) fn to_json(job: v1::Job) -> Result<v1::Job, Error> {
    match serde_json::to_value(&job) {
        Ok(_) => Ok(job),
        Err(error) => Err(Error::text(format!(
            "Error reading the gateway's answer. The gateway may be newer than this command.\n{error}"
        ))),
    }
}
