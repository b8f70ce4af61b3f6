//! `kafila job run`

use jobspec::Parsed;
use proto::v1;

use super::watch;
use crate::args::job::Run;
use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;
use crate::files::diagnostic;
use crate::files::job as job_file;
use crate::json::job::Wrapped;
use crate::output::colour::Colour;
use crate::output::json::pretty;
use crate::render;

/// Start of the refusal if the job's index does not match. Source: Nomad.
const CHECK_INDEX_REFUSED: &str = "Enforcing job modify index";

pub(crate) async fn run(context: &Context, args: Run) -> Result<Exit, Error> {
    let colour = context.printer.colour_err;
    // Reading from a pipe may block; nothing else runs in this process yet.
    let parsed = job_file::read(&args.file, colour)?;
    let mut job = parsed.job.clone();
    let namespace = job_file::namespace(
        &job,
        context.namespace_flag.as_deref(),
        context.connection.namespace(),
    )?;
    if args.output {
        return output(context, job);
    }
    job.namespace = Some(namespace.clone());
    let job_id = job.id().to_owned();
    let request = v1::RegisterJobRequest {
        job: Some(job),
        check_index: args.check_index,
        eval_priority: args.eval_priority.unwrap_or_default(),
        request_id: context.connection.request_id(),
        preserve_counts: args.preserve_counts,
        preserve_resources: args.preserve_resources,
        force: args.force,
    };
    let answer = match Box::pin(context.connection.register(request)).await {
        Ok(answer) => answer,
        Err(error) => return Err(explained(error, &parsed, &job_id, colour)),
    };
    let warnings = [parsed.warnings, answer.warnings].concat();
    if !warnings.is_empty() {
        context
            .printer
            .err(&diagnostic::warnings(&warnings, colour));
    }
    if args.detach || answer.eval_id.is_empty() {
        context.printer.out("Job registration successful")?;
        if !answer.eval_id.is_empty() {
            context
                .printer
                .out(&format!("Evaluation ID: {}", answer.eval_id))?;
        }
        if answer.next_periodic_launch_ns > 0 {
            let style = context.style(args.verbose);
            let when = render::job::due(answer.next_periodic_launch_ns, &style);
            context
                .printer
                .out(&format!("Approximate next launch time: {when}"))?;
        }
        return Ok(Exit::Success);
    }
    watch::job(context, (&namespace, &job_id), answer.eval_id, args.verbose).await
}

fn output(context: &Context, job: v1::Job) -> Result<Exit, Error> {
    context.finish(&pretty(&Wrapped { job }))
}

/// Adds lines of the job file and advice to a refusal.
fn explained(error: Error, parsed: &Parsed, job_id: &str, colour: Colour) -> Error {
    if let Some(errors) = error.field_errors() {
        let places = parsed.places.locate(&errors);
        return Error::text(format!(
            "Error submitting job: {}\n{}",
            diagnostic::counted(&errors),
            diagnostic::errors(&places, colour)
        ));
    }
    let reason = error.reason();
    if reason.contains(CHECK_INDEX_REFUSED) && reason.ends_with("job does not exist") {
        return Error::text(format!(
            "{reason}\nJob not updated\n-check-index=0 registers the job {job_id:?} as a new one."
        ));
    }
    if reason.contains(CHECK_INDEX_REFUSED) {
        return Error::text(format!(
            "{}\nJob not updated\n\
             'kafila job inspect {job_id}' shows its current JobModifyIndex.",
            error.reason()
        ));
    }
    if error.may_have_happened() {
        return Error::text(format!(
            "{error}\nThe job may have been stored: see 'kafila job status {job_id}'. Running it again is \
             safe."
        ));
    }
    error
}
