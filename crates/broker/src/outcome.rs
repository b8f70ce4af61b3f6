//! The evaluations that the eval-broker writes: failed, their follow-ups, canceled.

use std::time::Duration;

use model::{EvalId, EvalStatus, Evaluation, Indexed, Timestamp, TriggeredBy};
use state::Snapshot;

/// Returns `eval` as it is written after its last delivery, linked to its follow-up if it has one.
pub fn failed(
    eval: &Evaluation,
    delivery_limit: u8,
    follow_up: Option<EvalId>,
    now: Timestamp,
) -> Evaluation {
    Evaluation {
        status: EvalStatus::Failed,
        status_description: format!(
            "evaluation reached the delivery limit of {delivery_limit}: no worker finished it"
        ),
        next_eval: follow_up.or(eval.next_eval),
        modify_time: modified(eval, now),
        ..eval.clone()
    }
}

/// Returns the evaluation that looks at the job again after `eval` failed, `after` from `now`.
pub fn follow_up(eval: &Evaluation, id: EvalId, now: Timestamp, after: Duration) -> Evaluation {
    Evaluation {
        wait_until: now.plus(after),
        previous_eval: Some(eval.id),
        trace_parent: eval.trace_parent.clone(),
        ..Evaluation::pending(
            id,
            eval.job.clone(),
            eval.job_type,
            eval.priority,
            TriggeredBy::FailedFollowUp,
            now,
        )
    }
}

/// Returns which evaluation of the job has placed everything since `eval` was blocked: the newest.
pub fn placed_all_since(snapshot: &Snapshot, eval: &Indexed<Evaluation>) -> Option<EvalId> {
    if eval.value.status != EvalStatus::Blocked {
        return None;
    }
    let others = snapshot.evals_by_job(&eval.value.job).filter(|other| {
        other.modify_index > eval.modify_index
            && other.value.status == EvalStatus::Complete
            && other.value.failed_task_groups.is_empty()
    });
    let newest = others.max_by_key(|other| other.modify_index)?;
    Some(newest.value.id)
}

/// Returns `eval` as it is written once a newer one of the job has made it needless; `placed_all`
/// is the one that left it nothing to wait for.
pub fn canceled(eval: &Evaluation, placed_all: Option<EvalId>, now: Timestamp) -> Evaluation {
    let status_description = match (placed_all, eval.status) {
        (Some(id), _) => format!("evaluation \"{id}\" successful"),
        (None, EvalStatus::Blocked) => {
            "a newer evaluation of the job is blocked or has placed everything".to_owned()
        }
        (None, _) => "a newer evaluation of the job takes its place".to_owned(),
    };
    Evaluation {
        status: EvalStatus::Canceled,
        status_description,
        modify_time: modified(eval, now),
        ..eval.clone()
    }
}

/// Returns the time of a change: after the creation, even when clocks disagree.
fn modified(eval: &Evaluation, now: Timestamp) -> Timestamp {
    Timestamp(now.0.max(eval.create_time.0 + 1))
}
