//! `kafila job stop`

use proto::v1;

use super::watch::{self, Watch};
use crate::args::job::Stop;
use crate::commands::confirm::{self, Answer};
use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;
use crate::monitor::{Goal, Subject, labelled};
use crate::resolve;

pub(crate) async fn run(context: &Context, args: Stop) -> Result<Exit, Error> {
    let alone = args.ids.len() == 1;
    let mut jobs = Vec::new();
    let mut worst = Exit::Success;
    let style = context.style_err(args.verbose);
    for id in &args.ids {
        match resolve::job(&context.connection, id, &style).await {
            Ok(job) => jobs.push(job),
            Err(error) if alone => return Err(error),
            // The other jobs are still stopped.
            Err(error) => {
                context.printer.err(&error.to_string());
                worst = worst.max(error.exit());
            }
        }
    }
    if let ([job], [typed], false) = (&jobs[..], &args.ids[..], args.yes)
        && job.id != *typed
    {
        let question = format!("Are you sure you want to stop job {:?}?", job.id);
        let unanswered = format!("Error stopping job: {:?} needs a confirmation", job.id);
        match confirm::ask(context, &question, &unanswered)? {
            Answer::Yes => {}
            Answer::No => return context.finish("Cancelling job stop"),
            Answer::Unclear => return Ok(Exit::Failure),
        }
    }
    let stopping = jobs.iter().map(|job| stop(context, &args, job, alone));
    let stopping = async {
        let mut worst = worst;
        for ended in futures::future::join_all(stopping).await {
            worst = worst.max(match ended {
                Ok(exit) => exit,
                Err(error) if alone => return Err(error),
                Err(error) => {
                    context.printer.err(&error.to_string());
                    error.exit()
                }
            });
        }
        Ok(worst)
    };
    let detached = "The jobs continue to stop: see 'kafila job status'";
    watch::interruptible(context, stopping, detached).await
}

async fn stop(
    context: &Context,
    args: &Stop,
    job: &v1::JobStub,
    alone: bool,
) -> Result<Exit, Error> {
    let request = v1::DeregisterJobRequest {
        namespace: job.namespace.clone(),
        job_id: job.id.clone(),
        purge: args.purge,
        eval_priority: args.eval_priority.unwrap_or_default(),
        request_id: context.connection.request_id(),
        no_shutdown_delay: args.no_shutdown_delay,
    };
    let answer = context.connection.deregister(request).await?;
    let label = (!alone).then_some(job.id.as_str());
    if answer.eval_id.is_empty() {
        // Parents of dispatched or periodic jobs have no evaluation. Any other job was purged.
        let id = &job.id;
        let line = if job.periodic {
            format!("Job {id:?} stopped: it launches no more jobs. Those that run go on")
        } else if job.parameterized {
            format!("Job {id:?} stopped: it can no longer be dispatched. Dispatched jobs go on")
        } else {
            format!("Job {id:?} no longer exists: nothing to stop")
        };
        context.printer.out(&labelled(label, &line))?;
        return Ok(Exit::Success);
    }
    if args.detach {
        let line = format!("Evaluation ID: {}", answer.eval_id);
        context.printer.out(&labelled(label, &line))?;
        return Ok(Exit::Success);
    }
    let watch = Watch {
        subject: Subject::Evaluation(answer.eval_id),
        goal: Goal::Stop,
        namespace: &job.namespace,
        verbose: args.verbose,
        label,
    };
    watch::follow(context, watch).await
}
