//! `kafila job revert`

use proto::v1;
use proto::v1::revert_job_request::To;

use super::watch::{self, Watch};
use crate::args::job_versions::Revert;
use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;
use crate::monitor::{Goal, Subject};
use crate::resolve;

pub(crate) async fn run(context: &Context, args: &Revert) -> Result<Exit, Error> {
    let connection = &context.connection;
    let style = context.style_err(args.verbose);
    let stub = resolve::job(connection, &args.id, &style).await?;
    let message = v1::RevertJobRequest {
        namespace: stub.namespace.clone(),
        job_id: stub.id.clone(),
        to: Some(read_target(&args.to)),
        request_id: connection.request_id(),
        ..v1::RevertJobRequest::default()
    };
    let answer = connection.revert(message).await?;
    if answer.eval_id.is_empty() {
        // It is periodic or parameterized: only its children have evaluations.
        context.printer.out("Job revert successful")?;
        return Ok(Exit::Success);
    }
    if args.detach {
        let line = format!("Evaluation ID: {}", answer.eval_id);
        context.printer.out(&line)?;
        return Ok(Exit::Success);
    }
    let watch = Watch {
        subject: Subject::Evaluation(answer.eval_id),
        goal: Goal::Start,
        namespace: &stub.namespace,
        verbose: args.verbose,
        label: None,
    };
    let job_id = &stub.id;
    let goes_on = format!(
        "The job {job_id:?} goes on without being watched: see 'kafila job status {job_id}'"
    );
    watch::until_ended(context, watch, &goes_on).await
}

/// A number is a version's; a tag has a letter in it.
fn read_target(text: &str) -> To {
    match text.parse() {
        Ok(version) => To::Version(version),
        Err(_) => To::Tag(text.to_owned()),
    }
}
