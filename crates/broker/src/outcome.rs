//! The evaluations that the eval-broker writes: failed, their follow-ups, canceled.

use std::time::Duration;

use model::{EvalId, EvalStatus, Evaluation, Timestamp, TriggeredBy};

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

/// Returns `eval` as it is written once a newer one of the job has made it needless.
pub fn canceled(eval: &Evaluation, now: Timestamp) -> Evaluation {
    let status_description = match eval.status {
        EvalStatus::Blocked => "a newer evaluation of the job is blocked or has placed everything",
        _ => "a newer evaluation of the job takes its place",
    };
    Evaluation {
        status: EvalStatus::Canceled,
        status_description: status_description.to_owned(),
        modify_time: modified(eval, now),
        ..eval.clone()
    }
}

/// Returns the time of a change: after the creation, even when clocks disagree.
fn modified(eval: &Evaluation, now: Timestamp) -> Timestamp {
    Timestamp(now.0.max(eval.create_time.0 + 1))
}
