//! State machine of the monitor: from the answers of the gateway to output, next request and exit.
//!
//! Pure: answers come in as events with their arrival time. [`super::follow`] drives it.

use super::deployment::DeploymentWatch;
use super::evaluation::{EvaluationWatch, is_batch};
use super::line::Output;
use super::question::{Ask, Event, Goal, Next, Reverted};
use super::reminder::Reminder;
use crate::connection::JobWithAllocs;
use crate::exit::Exit;
use crate::output::printable;
use crate::render::Style;
use crate::render::deployment_hold::{DeploymentHold, failed_before};
use crate::retries::MAX_RETRIES;

/// Parameters of a monitor.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    pub(crate) goal: Goal,
    /// The URL of the gateway, for messages.
    pub(crate) gateway: String,
    pub(crate) namespace: String,
}

/// One watch, from the first evaluation to the end.
#[derive(Debug)]
pub(crate) struct Monitor {
    options: Options,
    stage: Stage,
    /// An evaluation of the chain so far had failed placements.
    placement_failed: bool,
    /// The submitted version failed: the watched deployment reverts it.
    reverted: Option<Reverted>,
    /// Consecutive requests without an answer.
    unanswered: u32,
    reminder: Reminder,
}

#[derive(Debug)]
enum Stage {
    Evaluation(EvaluationWatch),
    Deployment(DeploymentWatch),
    /// The evaluation has ended without a deployment of its own: an earlier deployment may block the
    /// job.
    Job {
        id: String,
        next: Box<Next>,
    },
    Ended(Exit),
}

impl Monitor {
    pub(crate) fn of_evaluation(options: Options, eval_id: &str) -> Self {
        let stage = Stage::Evaluation(EvaluationWatch::new(eval_id, false));
        Self::new(options, stage)
    }

    pub(crate) fn of_deployment(options: Options, deployment_id: &str) -> Self {
        let stage = Stage::Deployment(DeploymentWatch::new(deployment_id));
        Self::new(options, stage)
    }

    fn new(options: Options, stage: Stage) -> Self {
        Self {
            options,
            stage,
            placement_failed: false,
            reverted: None,
            unanswered: 0,
            reminder: Reminder::default(),
        }
    }

    /// Returns the next request; the same until [`Self::step`] has its answer.
    pub(crate) fn ask(&self) -> Ask {
        match &self.stage {
            Stage::Evaluation(watch) => watch.ask(),
            Stage::Deployment(watch) => watch.ask(),
            Stage::Job { id, .. } => Ask::Job { job_id: id.clone() },
            Stage::Ended(exit) => Ask::Nothing(*exit),
        }
    }

    /// Returns the output before the first request.
    pub(crate) fn start(&self, style: &Style) -> Vec<Output> {
        match &self.stage {
            Stage::Evaluation(watch) => vec![watch.title(style)],
            Stage::Deployment(_) | Stage::Job { .. } | Stage::Ended(_) => Vec::new(),
        }
    }

    /// Processes the answer to [`Self::ask`].
    pub(crate) fn step(&mut self, style: &Style, event: Event) -> Vec<Output> {
        let mut out = Vec::new();
        let event = match event {
            Event::Lost(why) => {
                self.lost(&why, &mut out);
                return out;
            }
            Event::Refused(why) => {
                out.push(Output::Step(why));
                self.stage = Stage::Ended(Exit::Failure);
                return out;
            }
            event => event,
        };
        if self.unanswered > 0 {
            self.unanswered = 0;
            out.push(Output::Detail(format!(
                "The gateway at {} answers again",
                self.options.gateway
            )));
        }
        let next = match &mut self.stage {
            Stage::Evaluation(watch) => {
                let next = watch.step(style, self.options.goal, event, &mut out);
                self.placement_failed |= watch.placement_failed();
                next
            }
            Stage::Deployment(watch) => watch.step(style, event, &mut out),
            Stage::Job { next, .. } => {
                let next = std::mem::replace(&mut **next, Next::Stay);
                unless_blocked(style, &event, next, &mut out)
            }
            Stage::Ended(_) => Next::Stay,
        };
        self.advance(style, next, &mut out);
        let reason = match &self.stage {
            Stage::Evaluation(watch) => watch.wait_reason(style),
            Stage::Deployment(watch) => watch.wait_reason(style),
            Stage::Job { .. } | Stage::Ended(_) => None,
        };
        let has_news = !out.is_empty();
        out.extend(self.reminder.step(style.times.now_ns, has_news, reason));
        out
    }

    fn advance(&mut self, style: &Style, next: Next, out: &mut Vec<Output>) {
        self.stage = match next {
            Next::Stay => return,
            // The title depends on its delay, known from the first answer.
            Next::Evaluation(id) => Stage::Evaluation(EvaluationWatch::new(&id, true)),
            Next::Deployment(id) => watch_deployment(style, &id, out),
            Next::Revert(reverted) => {
                let stage = watch_deployment(style, &reverted.deployment_id, out);
                self.reverted = Some(reverted);
                stage
            }
            Next::UnlessBlocked { job_id: id, next } => Stage::Job { id, next },
            Next::Ended(Exit::Success)
                if self.reverted.is_some() && self.options.goal != Goal::Revert =>
            {
                out.extend(self.reverted.as_ref().map(outcome).map(Output::Step));
                // Exit code 0 would hide from a pipeline that its version does not run.
                Stage::Ended(Exit::Failure)
            }
            Next::Ended(Exit::Success) if self.placement_failed && !self.is_deployment() => {
                Stage::Ended(Exit::PlacementFailed)
            }
            Next::Ended(exit) => Stage::Ended(exit),
        };
    }

    fn is_deployment(&self) -> bool {
        matches!(self.stage, Stage::Deployment(_))
    }

    fn lost(&mut self, why: &str, out: &mut Vec<Output>) {
        self.unanswered += 1;
        let gateway = &self.options.gateway;
        if self.unanswered == 1 {
            out.push(Output::Detail(format!(
                "Lost the gateway at {gateway}, retrying ({why})"
            )));
        }
        if self.unanswered > MAX_RETRIES {
            out.push(Output::Step(format!(
                "Stopped watching: the gateway at {gateway} does not answer ({why}). The submitted \
                 change continues"
            )));
            self.stage = Stage::Ended(Exit::Failure);
        }
    }
}

fn watch_deployment(style: &Style, id: &str, out: &mut Vec<Output>) -> Stage {
    let shown = style.id(id);
    out.push(Output::Step(format!("Monitoring deployment \"{shown}\"")));
    Stage::Deployment(DeploymentWatch::new(id))
}

/// Describes a revert that has succeeded.
fn outcome(reverted: &Reverted) -> String {
    let Reverted {
        failed_version,
        new_version,
        earlier_version,
        ..
    } = reverted;
    match earlier_version {
        Some(earlier) => format!(
            "Version {failed_version} failed; the job runs version {earlier} again, as version \
             {new_version}"
        ),
        None => format!(
            "Version {failed_version} failed; the job was reverted, as version {new_version}"
        ),
    }
}

/// Returns `next`, or a failure with its reason if a failed deployment blocks the job.
fn unless_blocked(style: &Style, event: &Event, next: Next, out: &mut Vec<Output>) -> Next {
    let Event::Job(found) = event else {
        // The job has been purged.
        return next;
    };
    match DeploymentHold::find(&found.job, &found.deployments, &found.allocs)
        .filter(DeploymentHold::has_failed)
    {
        Some(hold) => {
            let sentence = hold.sentence(style);
            let (first, rest) = sentence.split_at(1);
            out.push(Output::Step(format!("{}{rest}", first.to_uppercase())));
            Next::Ended(Exit::Failure)
        }
        None => {
            let failed = failed_before(style, &found.job, &found.deployments);
            if let Some(sentence) = nothing_runs(found).or(failed) {
                out.push(Output::Step(sentence));
                return Next::Ended(Exit::Failure);
            }
            out.extend(nothing_to_run(found).map(Output::Step));
            next
        }
    }
}

/// Says that all allocations of a service have failed and the evaluation has placed none; `None` while
/// one may run. Exit code 0 would hide it from a pipeline.
fn nothing_runs(found: &JobWithAllocs) -> Option<String> {
    let job = &found.job;
    let is_wanted = job.task_groups.iter().any(|group| group.count() > 0);
    if is_batch(job.r#type()) || !is_wanted || has_live(found) || !has_failed(found) {
        return None;
    }
    let id = printable(job.id());
    Some(format!(
        "Nothing of job {id:?} runs: its allocations have failed, and their reschedule policy allows no \
         replacement now. 'kafila job run -force FILE' replaces them"
    ))
}

fn has_live(found: &JobWithAllocs) -> bool {
    let live = ["pending", "running", "unknown"];
    let mut allocs = found.allocs.iter();
    allocs.any(|alloc| live.contains(&alloc.client_status.as_str()))
}

fn has_failed(found: &JobWithAllocs) -> bool {
    let mut allocs = found.allocs.iter();
    allocs.any(|alloc| alloc.client_status == "failed")
}

/// Says that a batch job has ended, so that an evaluation places nothing; `None` while it may run.
fn nothing_to_run(found: &JobWithAllocs) -> Option<String> {
    let job = &found.job;
    if !is_batch(job.r#type()) || found.allocs.is_empty() {
        return None;
    }
    let id = printable(job.id());
    match (has_live(found), has_failed(found)) {
        (true, _) => None,
        (false, false) => Some(format!(
            "Nothing to run: job {id:?} has completed. 'kafila job run -force FILE' \
             runs it again as a new version"
        )),
        (false, true) => Some(format!(
            "Nothing to run: job {id:?} has failed. 'kafila job eval \
             -force-reschedule {id}' replaces its failed allocations"
        )),
    }
}
