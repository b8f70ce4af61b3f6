//! Decides what to ask the gateway next, what to print, and how it all ended.
//!
//! Pure: answers come in as events with the time they arrived at, lines and the next question go
//! out. The driver is [`super::follow`].

use std::time::Duration;

use proto::v1;

use super::deployment::DeploymentWatch;
use super::evaluation::EvaluationWatch;
use super::line::Output;
use crate::connection::JobAtWork;
use crate::exit::Exit;
use crate::render::Style;
use crate::render::held::Held;

/// How long one question waits for a change. Everything that changes what is shown answers it at
/// once; this bounds how long a change goes unseen of which the gateway's index tells nothing.
/// Source: the interval at which Nomad's monitor looks at a deployment.
pub(super) const WAIT: Duration = Duration::from_secs(2);

/// How often in a row a question may go unanswered: with the waits in between (1 s doubling to
/// 12 s) about a minute and a half, in which a gateway restarts or another takes over.
/// Source: Nomad's monitor.
pub(super) const MAX_RETRIES: u32 = 10;

/// How to watch.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    pub(crate) goal: Goal,
    /// As in `http://127.0.0.1:4646`, for notes.
    pub(crate) gateway: String,
    pub(crate) namespace: String,
}

/// What the watched evaluation is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Goal {
    /// To bring something up: it has ended when its deployment has.
    Start,
    /// To take something down: a deployment that is cancelled for it is no failure.
    Stop,
}

/// What to ask the gateway.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ask {
    /// The evaluation, once it is newer than `after`, and its allocations.
    Evaluation { id: String, after: u64 },
    /// The deployment, once it is newer than `after`; and its allocations, for `verbose` and when
    /// some are unhealthy.
    Deployment { id: String, after: u64 },
    /// The deployments of a job, once they are newer than `after`.
    Deployments { job_id: String, after: u64 },
    /// The job, with its deployments and allocations.
    Job { job_id: String },
    /// Whether the operator has paused the eval-broker.
    IsPaused,
    /// Nothing: it has ended.
    Nothing(Exit),
}

/// What the gateway answered.
#[derive(Clone, Debug)]
pub(crate) enum Event {
    Evaluation {
        evaluation: Box<v1::Evaluation>,
        allocs: Vec<v1::Allocation>,
        index: u64,
    },
    Deployment {
        deployment: Box<v1::Deployment>,
        allocs: Vec<v1::Allocation>,
        index: u64,
    },
    Deployments {
        deployments: Vec<v1::Deployment>,
        index: u64,
    },
    Job(Box<JobAtWork>),
    IsPaused(bool),
    /// There is no such thing.
    NotFound,
    /// No answer, and why; to be asked again.
    Lost(String),
    /// An answer that will not get better.
    Refused(String),
}

/// One watch, from the first evaluation to the end.
#[derive(Debug)]
pub(crate) struct Monitor {
    options: Options,
    stage: Stage,
    /// An evaluation before this one, or this one, could not place everything.
    placement_failed: bool,
    /// Questions in a row without an answer.
    unanswered: u32,
}

#[derive(Debug)]
enum Stage {
    Evaluation(EvaluationWatch),
    Deployment(DeploymentWatch),
    /// The evaluation has ended and rolls nothing out: whether that is for a deployment that ended
    /// before it is still to be seen.
    Job {
        id: String,
        next: Box<Next>,
    },
    Ended(Exit),
}

/// What a stage leads to.
#[derive(Debug)]
pub(super) enum Next {
    Stay,
    /// Another evaluation carries on.
    Evaluation(String),
    /// The evaluation has ended; what it rolls out has not.
    Deployment(String),
    /// `next`, unless a deployment holds the job back.
    UnlessHeld {
        job_id: String,
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
            unanswered: 0,
        }
    }

    /// Returns the question to ask now; the same until [`Self::step`] has its answer.
    pub(crate) fn ask(&self) -> Ask {
        match &self.stage {
            Stage::Evaluation(watch) => watch.ask(),
            Stage::Deployment(watch) => watch.ask(),
            Stage::Job { id, .. } => Ask::Job { job_id: id.clone() },
            Stage::Ended(exit) => Ask::Nothing(*exit),
        }
    }

    /// Returns what to print before the first question.
    pub(crate) fn start(&self, style: &Style) -> Vec<Output> {
        match &self.stage {
            Stage::Evaluation(watch) => vec![watch.title(style)],
            Stage::Deployment(_) | Stage::Job { .. } | Stage::Ended(_) => Vec::new(),
        }
    }

    /// Takes the answer to [`Self::ask`].
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
                unless_held(style, &event, next, &mut out)
            }
            Stage::Ended(_) => Next::Stay,
        };
        self.advance(style, next, &mut out);
        out
    }

    fn advance(&mut self, style: &Style, next: Next, out: &mut Vec<Output>) {
        self.stage = match next {
            Next::Stay => return,
            // What it is called is known once it has been seen: it may have to wait.
            Next::Evaluation(id) => Stage::Evaluation(EvaluationWatch::new(&id, true)),
            Next::Deployment(id) => {
                let shown = style.id(&id);
                out.push(Output::Step(format!("Monitoring deployment \"{shown}\"")));
                Stage::Deployment(DeploymentWatch::new(&id))
            }
            Next::UnlessHeld { job_id: id, next } => Stage::Job { id, next },
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
                "Lost the gateway at {gateway}, trying again ({why})"
            )));
        }
        if self.unanswered > MAX_RETRIES {
            out.push(Output::Step(format!(
                "Gave up on the gateway at {gateway} ({why}); what was submitted goes on without \
                 being watched"
            )));
            self.stage = Stage::Ended(Exit::Failure);
        }
    }
}

/// Goes on with `next`, unless a failed deployment keeps the job from being placed: then that is
/// said, and it is a failure.
fn unless_held(style: &Style, event: &Event, next: Next, out: &mut Vec<Output>) -> Next {
    let Event::Job(found) = event else {
        // The job is gone.
        return next;
    };
    match Held::find(&found.job, &found.deployments, &found.allocs).filter(Held::has_failed) {
        Some(held) => {
            let sentence = held.sentence(style);
            let (first, rest) = sentence.split_at(1);
            out.push(Output::Step(format!("{}{rest}", first.to_uppercase())));
            Next::Ended(Exit::Failure)
        }
        None => next,
    }
}
