//! One evaluation through as many attempts as it takes: a plan, its result, and again when part of
//! it was refused.

use model::job::JobType;
use model::{EvalId, EvalStatus, Plan, PlanResult, Timestamp};
use state::Snapshot;

use crate::{Choice, Decision, decide};

/// How often a service's plan may be refused without progress. Source: Nomad's public behaviour.
const ATTEMPTS_MAX_SERVICE: u32 = 5;
/// The same for batch work.
const ATTEMPTS_MAX_BATCH: u32 = 2;
/// How often even the plan that only says "given up" may be refused: whatever overtakes it (the
/// job changed, another delivery) has settled by then, or the broker delivers the evaluation again.
const GIVE_UPS_MAX: u32 = 3;

/// How nodes are chosen at first, and by who has met others. Source:
/// `docs/decisions/0006-near-ties-and-collisions.md`.
const CHOICES: &[Choice] = &[
    Choice::FIRST,
    Choice {
        among: 16,
        ..Choice::FIRST
    },
];

/// Carries one evaluation to its end.
#[derive(Clone, Debug)]
pub struct Run {
    /// How nodes are chosen at first, after one collision, and so on; the last holds from then on.
    choices: &'static [Choice],
    /// Plans of which other plans had taken nodes.
    collisions: usize,
    eval_id: EvalId,
    eval_token: String,
    job_type: JobType,
    /// Attempts since the last that got anything committed.
    attempts: u32,
    give_ups: u32,
    /// Why the last plan was refused as a whole, when it was.
    refusal: Option<String>,
}

/// What to do next for an evaluation.
#[derive(Clone, Debug, PartialEq)]
pub enum Attempt {
    /// Submit this, and tell [`Run::settle`] what came of it.
    Submit(Box<Decision>),
    /// It has ended without us: another delivery or the broker was faster. Nothing is to be written.
    Overtaken,
}

/// What a plan's result means for the evaluation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settled {
    /// All of the plan is committed, and with it how the evaluation ended.
    Done,
    /// Try again on a snapshot at this revision or later.
    Retry { refresh_index: u64 },
    /// Refused over and over: the evaluation must be delivered again.
    Hopeless,
    /// Part of it was refused, and nobody says from which revision on that can be seen: planned again
    /// on what is known here it would be the same plan. The evaluation must be delivered again.
    Unrefreshed,
}

impl Run {
    /// Starts the run of an evaluation that the broker delivered under `eval_token`.
    pub fn new(eval_id: EvalId, eval_token: String) -> Self {
        Self {
            choices: CHOICES,
            collisions: 0,
            eval_id,
            eval_token,
            job_type: JobType::Service,
            attempts: 0,
            give_ups: 0,
            refusal: None,
        }
    }

    /// Chooses nodes otherwise: for measuring what that would do.
    #[doc(hidden)]
    #[must_use]
    pub fn with_choices(self, choices: &'static [Choice]) -> Self {
        Self { choices, ..self }
    }

    /// Looks at the job once more.
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
            decide(config, self.choice(), snapshot, eval, now, seed, None)
        } else {
            let mut reason = format!("maximum attempts reached ({})", self.attempts_max());
            if let Some(refusal) = &self.refusal {
                // Whoever reads it can do something about what the store refuses, say.
                reason = format!("{reason}: {refusal}");
            }
            decide(
                config,
                Choice::FIRST,
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

    /// Takes in what became of `plan`.
    pub fn settle(&mut self, plan: &Plan, result: &PlanResult) -> Settled {
        if result.refused.is_none() && result.refresh_index == 0 {
            let is_whole = result.rejected_nodes.is_empty();
            return if is_whole {
                Settled::Done
            } else {
                Settled::Unrefreshed
            };
        }
        self.collisions += usize::from(!result.rejected_nodes.is_empty());
        let gave_up = self.attempts >= self.attempts_max();
        self.refusal.clone_from(&result.refused);
        if gave_up {
            self.give_ups += 1;
            if self.give_ups >= GIVE_UPS_MAX {
                return Settled::Hopeless;
            }
        } else if result.commit_index > 0 {
            self.attempts = 0;
        } else {
            self.attempts += 1;
        }
        let refresh_index = result.refresh_index.max(plan.snapshot_index);
        Settled::Retry { refresh_index }
    }

    fn choice(&self) -> Choice {
        let choice = self.choices.get(self.collisions);
        choice
            .or(self.choices.last())
            .copied()
            .unwrap_or(Choice::FIRST)
    }

    fn attempts_max(&self) -> u32 {
        match self.job_type {
            JobType::Batch | JobType::Sysbatch => ATTEMPTS_MAX_BATCH,
            JobType::Service | JobType::System => ATTEMPTS_MAX_SERVICE,
        }
    }
}
