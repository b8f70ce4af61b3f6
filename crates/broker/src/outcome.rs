//! The writes of the eval-broker: evaluations that fail, their follow-ups, and canceled ones.

use std::time::Duration;

use model::{EvalId, EvalStatus, Evaluation, Indexed, Timestamp, TriggeredBy};
use state::{Entity, Key, Snapshot, Write};

/// Returns the writes that fail an evaluation after its last delivery, with a follow-up `after` from
/// `now` unless its job is gone; `None`: the evaluation is closed already.
pub fn fail(
    snapshot: &Snapshot,
    id: EvalId,
    delivery_limit: u8,
    follow_up_id: EvalId,
    after: Duration,
    now: Timestamp,
) -> Option<Vec<Write>> {
    let eval = open(snapshot, id)?;
    let job = snapshot.job(&eval.value.job);
    let next = job.map(|_| follow_up(&eval.value, follow_up_id, now, after));
    let next_id = next.as_ref().map(|next| next.id);
    let mut writes = vec![update(
        eval,
        failed(&eval.value, delivery_limit, next_id, now),
    )];
    writes.extend(next.map(Write::create_eval));
    Some(writes)
}

/// Returns the writes that cancel those of the evaluations that are open, one for each.
pub fn cancel_all(snapshot: &Snapshot, ids: &[EvalId], now: Timestamp) -> Vec<Write> {
    let writes = ids.iter().filter_map(|id| cancel(snapshot, *id, now));
    writes.collect()
}

/// Returns the write that cancels an evaluation; `None`: it is closed already.
fn cancel(snapshot: &Snapshot, id: EvalId, now: Timestamp) -> Option<Write> {
    let eval = open(snapshot, id)?;
    let placed_all = placed_all_since(snapshot, eval);
    Some(update(eval, canceled(&eval.value, placed_all, now)))
}

fn open(snapshot: &Snapshot, id: EvalId) -> Option<&Indexed<Evaluation>> {
    let eval = snapshot.eval(id)?;
    (!eval.value.status.is_terminal()).then_some(&**eval)
}

fn update(read: &Indexed<Evaluation>, eval: Evaluation) -> Write {
    Write::Update {
        key: Key::Eval(eval.id),
        modify_index: read.modify_index,
        entity: Entity::Eval(Box::new(eval)),
    }
}

/// Returns `eval` failed, linked to its follow-up if it has one.
pub(crate) fn failed(
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

/// Returns the follow-up of a failed evaluation, `after` from `now`.
pub(crate) fn follow_up(
    eval: &Evaluation,
    id: EvalId,
    now: Timestamp,
    after: Duration,
) -> Evaluation {
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

/// Returns the newest evaluation of the job that has placed everything since `eval` was blocked.
pub(crate) fn placed_all_since(snapshot: &Snapshot, eval: &Indexed<Evaluation>) -> Option<EvalId> {
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

/// Returns `eval` canceled, because a newer evaluation of the job makes it redundant. `placed_all` is
/// the newer one if that has placed everything.
pub(crate) fn canceled(
    eval: &Evaluation,
    placed_all: Option<EvalId>,
    now: Timestamp,
) -> Evaluation {
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

/// Returns the time of a change: later than the creation, even when clocks disagree.
fn modified(eval: &Evaluation, now: Timestamp) -> Timestamp {
    Timestamp(now.0.max(eval.create_time.0 + 1))
}
