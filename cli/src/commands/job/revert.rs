//! `kafila job revert`

use proto::v1;
use proto::v1::revert_job_request::Target;

use super::watch;
use crate::args::job::versions::Revert;
use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;
use crate::resolve;

pub(crate) async fn run(context: &Context, args: &Revert) -> Result<Exit, Error> {
    let connection = &context.connection;
    let style = context.style_err(args.verbose);
    let stub = resolve::job(connection, &args.id, &style).await?;
    let message = v1::RevertJobRequest {
        namespace: stub.namespace.clone(),
        job_id: stub.id.clone(),
        target: Some(read_target(&args.to)),
        request_id: connection.request_id(),
        ..v1::RevertJobRequest::default()
    };
    let answer = connection.revert(message).await?;
    if answer.eval_id.is_empty() {
        // Periodic and parameterized jobs have no evaluations of their own.
        return context.finish("Job revert successful");
    }
    if args.detach {
        return context.finish(&format!("Evaluation ID: {}", answer.eval_id));
    }
    let job = (stub.namespace.as_str(), stub.id.as_str());
    watch::job(context, job, answer.eval_id, args.verbose).await
}

/// A number is a version's; a tag has a letter in it.
fn read_target(text: &str) -> Target {
    match text.parse() {
        Ok(version) => Target::Version(version),
        Err(_) => Target::Tag(text.to_owned()),
    }
}
