//! The evaluations that look again when failed allocations are due to be rescheduled.

use std::time::Duration;

use model::{EvalId, Evaluation, Timestamp, TriggeredBy};
use state::AllocView;

use crate::draw::Draw;

/// Allocations due within this time of each other share an evaluation.
/// Source: Nomad's public behaviour.
const BATCH_WINDOW: Duration = Duration::from_secs(5);

const DESCRIPTION: &str = "created for delayed rescheduling";

/// Makes the evaluations for allocations `due` at their times, and says which waits for which.
pub(crate) fn delayed_evals<'a>(
    cause: &Evaluation,
    mut due: Vec<(&'a AllocView, Timestamp)>,
    now: Timestamp,
    draw: &mut Draw,
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
                let eval = delayed_eval(cause, evals.is_empty(), at, now, draw);
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
    is_first: bool,
    at: Timestamp,
    now: Timestamp,
    draw: &mut Draw,
) -> Evaluation {
    // The triggers and the description are those that Nomad's users know.
    let triggered_by = if is_first {
        TriggeredBy::AllocReschedule
    } else {
        TriggeredBy::AllocFailure
    };
    let mut eval = Evaluation::pending(
        draw.eval_id(),
        cause.job.clone(),
        cause.job_type,
        cause.priority,
        triggered_by,
        now,
    );
    if is_first {
        eval.status_description = DESCRIPTION.to_owned();
    }
    eval.wait_until = at;
    eval.previous_eval = Some(cause.id);
    eval.trace_parent.clone_from(&cause.trace_parent);
    eval
}
