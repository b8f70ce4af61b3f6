//! Attempts at one evaluation: plans, their results, and retries after a refusal.

use model::job::JobType;
use model::{EvalId, EvalStatus, Plan, PlanResult, Timestamp};
use state::Snapshot;

use crate::schedule::{Decision, decide};
use crate::selection::Selection;

/// The maximum number of refused plans without progress, for services. Source: Nomad's public behaviour.
const ATTEMPTS_MAX_SERVICE: u32 = 5;
/// The same for batch work.
const ATTEMPTS_MAX_BATCH: u32 = 2;
/// The maximum number of refusals of the plan that gives up: an overtaking write (a change of the
/// job, another delivery) is over by then, or the broker delivers the evaluation again.
const GIVE_UPS_MAX: u32 = 3;

/// The selection of nodes at first, and after collisions with other plans. Source:
/// `docs/decisions/0006-near-ties-and-collisions.md`.
const SELECTIONS: &[Selection] = &[
    Selection::FIRST,
    Selection {
        among: 16,
        ..Selection::FIRST
    },
];

/// The run of one evaluation over all attempts.
#[derive(Clone, Debug)]
pub struct Run {
    /// The selection at first, after one collision, and so on; the last one stays.
    selections: &'static [Selection],
    /// Plans with nodes that other plans had taken.
    collisions: usize,
    eval_id: EvalId,
    eval_token: String,
    job_type: JobType,
    /// Attempts since the last one with a commit.
    attempts: u32,
    give_ups: u32,
    /// The reason for which the last plan was refused as a whole; `None`: it was not.
    refusal: Option<String>,
}

/// The next step for an evaluation.
#[derive(Clone, Debug, PartialEq)]
pub enum Attempt {
    /// Submit the plan, and pass its result to [`Run::evaluate_result`].
    Submit(Box<Decision>),
    /// The evaluation has ended: another delivery or the broker was faster. Nothing is written.
    Overtaken,
}

/// The meaning of a plan's result for the evaluation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlanOutcome {
    /// The whole plan is committed, with the end of the evaluation.
    Done,
    /// Retry on a snapshot at this revision or later.
    Retry { refresh_index: u64 },
    /// Refused too often: the evaluation must be delivered again.
    RefusedTooOften,
    /// Part of the plan was refused without a revision to refresh to: a retry would make the same
    /// plan. The evaluation must be delivered again.
    Unrefreshed,
}

impl Run {
    /// Starts the run of an evaluation that the broker delivered under `eval_token`.
    pub fn new(eval_id: EvalId, eval_token: String) -> Self {
        Self {
            selections: SELECTIONS,
            collisions: 0,
            eval_id,
            eval_token,
            job_type: JobType::Service,
            attempts: 0,
            give_ups: 0,
            refusal: None,
        }
    }

    /// Sets other selections of nodes, for measurements.
    #[doc(hidden)]
    #[must_use]
    pub fn with_selections(self, selections: &'static [Selection]) -> Self {
        Self { selections, ..self }
    }

    /// Returns the type of the job that the last attempt was about.
    pub fn job_type(&self) -> JobType {
        self.job_type
    }

    /// Makes a plan.
    pub fn attempt(&mut self, snapshot: &Snapshot, now: Timestamp, seed: u64) -> Attempt {
        let eval = match snapshot.eval(self.eval_id) {
            Some(eval) if !eval.value.status.is_terminal() => eval,
            _ => return Attempt::Overtaken,
        };
        debug_assert!(matches!(
            eval.value.status,
            EvalStatus::Pending | EvalStatus::Blocked
        ));
        self.job_type = eval.value.job_type;
        let config = snapshot.scheduler_config();
        let mut decision = if self.attempts < self.attempts_max() {
            decide(config, self.selection(), snapshot, eval, now, seed, None)
        } else {
            let mut reason = format!("maximum attempts reached ({})", self.attempts_max());
            if let Some(refusal) = &self.refusal {
                // The operator can act on it, if the store refuses the plan for instance.
                reason = format!("{reason}: {refusal}");
            }
            decide(
                config,
                Selection::FIRST,
                snapshot,
                eval,
                now,
                seed,
                Some(reason),
            )
        };
        decision.plan.eval_token.clone_from(&self.eval_token);
        Attempt::Submit(Box::new(decision))
    }

    /// Evaluates the result of `plan`.
    pub fn evaluate_result(&mut self, plan: &Plan, result: &PlanResult) -> PlanOutcome {
        if result.refused.is_none() && result.refresh_index == 0 {
            let is_whole = result.rejected_nodes.is_empty();
            return if is_whole {
                PlanOutcome::Done
            } else {
                PlanOutcome::Unrefreshed
            };
        }
        self.collisions += usize::from(!result.rejected_nodes.is_empty());
        let gave_up = self.attempts >= self.attempts_max();
        self.refusal.clone_from(&result.refused);
        if gave_up {
            self.give_ups += 1;
            if self.give_ups >= GIVE_UPS_MAX {
                return PlanOutcome::RefusedTooOften;
            }
        } else if result.commit_index > 0 {
            self.attempts = 0;
        } else {
            self.attempts += 1;
        }
        let refresh_index = result.refresh_index.max(plan.snapshot_index);
        PlanOutcome::Retry { refresh_index }
    }

    fn selection(&self) -> Selection {
        let selection = self.selections.get(self.collisions);
        selection
            .or(self.selections.last())
            .copied()
            .unwrap_or(Selection::FIRST)
    }

    fn attempts_max(&self) -> u32 {
        match self.job_type {
            JobType::Batch | JobType::Sysbatch => ATTEMPTS_MAX_BATCH,
            JobType::Service | JobType::System => ATTEMPTS_MAX_SERVICE,
        }
    }
}
