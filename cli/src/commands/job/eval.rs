//! `kafila job eval`

use proto::v1;

use super::watch;
use crate::args::job::operations::Eval;
use crate::commands::confirm;
use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;
use crate::resolve;

pub(crate) async fn eval(context: &Context, args: &Eval) -> Result<Exit, Error> {
    let style = context.style_err(args.verbose);
    let job = resolve::job(&context.connection, &args.id, &style).await?;
    if let Some(end) = confirm::job(context, (&job, &args.id), args.yes, "evaluate")? {
        return Ok(end);
    }
    let request = v1::EvaluateJobRequest {
        namespace: job.namespace.clone(),
        job_id: job.id.clone(),
        force_reschedule: args.force_reschedule,
    };
    let answer = context.connection.evaluate_job(request).await?;
    watch::warn_if_stopped(context, &job);
    context
        .printer
        .out(&format!("Created eval ID: \"{}\"", answer.eval_id))?;
    if args.detach {
        return Ok(Exit::Success);
    }
    watch::job(
        context,
        (&job.namespace, &job.id),
        answer.eval_id,
        args.verbose,
    )
    .await
}
