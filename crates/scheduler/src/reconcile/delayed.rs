//! Follow-up evaluations, for the end of reschedule delays and disconnect timeouts.

use std::time::Duration;

use model::{EvalId, Evaluation, Timestamp, TriggeredBy};
use state::AllocView;

use crate::run_rng::RunRng;

/// Allocations due within this time of each other share an evaluation.
/// Source: Nomad's public behaviour.
pub(crate) const BATCH_WINDOW: Duration = Duration::from_secs(5);

/// The reason for a follow-up evaluation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    /// The replacement after the reschedule delay.
    Reschedule,
    /// The replacement once the node has certainly stopped the allocation.
    Lost,
    /// The expiry as lost.
    Disconnect,
}

impl Wait {
    /// Triggers and descriptions are the same as in Nomad.
    fn labels(self, is_first: bool) -> (TriggeredBy, &'static str) {
        match (self, is_first) {
            (Self::Reschedule, true) => (
                TriggeredBy::AllocReschedule,
                "created for delayed rescheduling",
            ),
            (Self::Lost, true) => (
                TriggeredBy::AllocFailure,
                "created for delayed rescheduling",
            ),
            (Self::Reschedule | Self::Lost, false) => (TriggeredBy::AllocFailure, ""),
            (Self::Disconnect, _) => (
                TriggeredBy::MaxDisconnectTimeout,
                "created for delayed disconnect timeout",
            ),
        }
    }
}

/// Makes the evaluations for allocations `due` at their times, and assigns each allocation to one.
pub(crate) fn delayed_evals<'a>(
    cause: &Evaluation,
    wait: Wait,
    mut due: Vec<(&'a AllocView, Timestamp)>,
    now: Timestamp,
    rng: &mut RunRng,
) -> (Vec<Evaluation>, Vec<(&'a AllocView, EvalId)>) {
    due.sort_by_key(|(view, at)| (*at, view.alloc.name_index, view.alloc.id));
    let mut evals = Vec::<Evaluation>::new();
    let mut waiting = Vec::with_capacity(due.len());
    for (view, at) in due {
        let batch = evals
            .last()
            .filter(|eval| at.since(eval.wait_until) < BATCH_WINDOW);
        let id = match batch {
            Some(eval) => eval.id,
            None => {
                let labels = wait.labels(evals.is_empty());
                let eval = delayed_eval(cause, labels, at, now, rng);
                let id = eval.id;
                evals.push(eval);
                id
            }
        };
        waiting.push((view, id));
    }
    (evals, waiting)
}

fn delayed_eval(
    cause: &Evaluation,
    (triggered_by, description): (TriggeredBy, &str),
    at: Timestamp,
    now: Timestamp,
    rng: &mut RunRng,
) -> Evaluation {
    let mut eval = Evaluation::pending(
        rng.eval_id(),
        cause.job.clone(),
        cause.job_type,
        cause.priority,
        triggered_by,
        now,
    );
    eval.status_description = description.to_owned();
    eval.wait_until = at;
    eval.previous_eval = Some(cause.id);
    eval.trace_parent.clone_from(&cause.trace_parent);
    eval
}
