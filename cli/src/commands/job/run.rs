//! `kafila job run`

use jobspec::Parsed;
use model::EvalId;
use proto::v1;

use super::watch::{self, Watch};
use crate::args::job::Run;
use crate::context::Context;
use crate::diagnostic;
use crate::error::Error;
use crate::exit::Exit;
use crate::jobfile;
use crate::json::job::Wrapped;
use crate::monitor::{Goal, Subject};
use crate::output::colour::Colour;
use crate::output::json::pretty;
use crate::render;

/// What the gateway's refusal begins with when somebody else changed the job. Source: Nomad.
const CHECK_INDEX_REFUSED: &str = "Enforcing job modify index";

pub(crate) async fn run(context: &Context, args: Run) -> Result<Exit, Error> {
    let colour = context.printer.colour_err;
    // Reading may block, on a pipe for ever; nothing else runs in this process by now.
    let parsed = jobfile::read(&args.file, colour)?;
    let mut job = jobfile::to_wire(&parsed, colour)?;
    let namespace = jobfile::namespace(
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
        request_id: EvalId::from_random(context.connection.ids().next_u128()).to_string(),
        preserve_counts: args.preserve_counts,
        preserve_resources: args.preserve_resources,
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
            let when = render::children::when(answer.next_periodic_launch_ns, &style);
            context
                .printer
                .out(&format!("Approximate next launch time: {when}"))?;
        }
        return Ok(Exit::Success);
    }
    let watch = Watch {
        subject: Subject::Evaluation(answer.eval_id),
        goal: Goal::Start,
        namespace: &namespace,
        verbose: args.verbose,
        label: None,
    };
    let goes_on = format!(
        "The job {job_id:?} goes on without being watched: see 'kafila job status {job_id}', stop \
         it with 'kafila job stop {job_id}'"
    );
    watch::until_ended(context, watch, &goes_on).await
}

fn output(context: &Context, job: v1::Job) -> Result<Exit, Error> {
    let job = model::spec::Job::try_from(job).map_err(|errors| {
        Error::text(format!(
            "Error converting job:\n{}",
            diagnostic::fields(&errors)
        ))
    })?;
    context.printer.out(&pretty(&Wrapped { job }))?;
    Ok(Exit::Success)
}

/// Adds to a refusal what the job file and the user can tell of it.
fn explained(error: Error, parsed: &Parsed, job_id: &str, colour: Colour) -> Error {
    if let Some(errors) = error.field_errors() {
        let places = parsed.places.locate(&errors);
        return Error::text(format!(
            "Error submitting job: {}\n{}",
            diagnostic::counted(&errors),
            diagnostic::errors(&places, colour)
        ));
    }
    if error.reason().contains(CHECK_INDEX_REFUSED) {
        return Error::text(format!(
            "{}\nJob not updated\n\
             'kafila job inspect {job_id}' shows its JobModifyIndex.",
            error.reason()
        ));
    }
    if error.may_have_happened() {
        return Error::text(format!(
            "{error}\nThe job may have been stored all the same: see 'kafila job status {job_id}'; \
             running it again does no harm."
        ));
    }
    error
}
