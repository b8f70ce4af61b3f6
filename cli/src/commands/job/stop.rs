//! `kafila job stop`

use std::io::Write as _;

use proto::v1;

use super::watch::{self, Watch};
use crate::args::job::Stop;
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
            // The other jobs are stopped all the same.
            Err(error) => {
                context.printer.err(&error.to_string());
                worst = worst.max(error.exit());
            }
        }
    }
    if let ([job], [typed], false) = (&jobs[..], &args.ids[..], args.yes)
        && job.id != *typed
    {
        match confirmed(context, &job.id)? {
            Answer::Yes => {}
            Answer::No => {
                context.printer.out("Cancelling job stop")?;
                return Ok(Exit::Success);
            }
            Answer::None => {
                return Err(Error::text(format!(
                    "Error stopping job: nobody is there to say whether {:?} is meant.\n\
                     Name the whole id, or add -yes.",
                    job.id
                )));
            }
            Answer::Other => {
                context
                    .printer
                    .err("For confirmation, an exact 'y' is required.");
                return Ok(Exit::Failure);
            }
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
    let goes_on = "What was stopped goes on stopping: see 'kafila job status'";
    watch::interruptible(context, stopping, goes_on).await
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
    };
    let answer = context.connection.deregister(request).await?;
    let label = (!alone).then_some(job.id.as_str());
    if answer.eval_id.is_empty() {
        // A job that only has children is not evaluated; of any other, there is none any more.
        if !job.parameterized && !job.periodic {
            let line = format!("Job {:?} is gone already: nothing was left to stop", job.id);
            context.printer.out(&labelled(label, &line))?;
        }
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

#[derive(Debug, PartialEq, Eq)]
pub(in crate::commands) enum Answer {
    Yes,
    No,
    /// Standard input has ended: a script, or cron.
    None,
    Other,
}

/// Asks whether the job that was found is the one that was meant.
fn confirmed(context: &Context, job_id: &str) -> Result<Answer, Error> {
    let question = format!("Are you sure you want to stop job {job_id:?}? [y/N] ");
    asked(context, &question)
}

/// Asks whoever sits there.
pub(in crate::commands) fn asked(context: &Context, question: &str) -> Result<Answer, Error> {
    context.printer.out_bytes(question.as_bytes())?;
    let _ = std::io::stdout().flush();
    let mut line = String::new();
    std::io::stdin()
        .read_line(&mut line)
        .map_err(Error::Input)?;
    if !line.ends_with('\n') {
        // Nobody pressed return: keep what follows off the question's line.
        context.printer.out("")?;
    }
    Ok(read_answer(&line))
}

fn read_answer(line: &str) -> Answer {
    if line.is_empty() {
        return Answer::None;
    }
    match line.trim() {
        "y" => Answer::Yes,
        "" | "n" | "N" | "no" | "No" => Answer::No,
        _ => Answer::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_exact_y_means_yes() {
        assert_eq!(read_answer("y\n"), Answer::Yes);
        assert_eq!(read_answer(""), Answer::None);
        for line in ["\n", "n\n", "N", "no\n"] {
            assert_eq!(read_answer(line), Answer::No, "{line:?}");
        }
        for line in ["Y\n", "yes\n", "sure\n"] {
            assert_eq!(read_answer(line), Answer::Other, "{line:?}");
        }
    }
}
