//! Deletion of evaluations by an operator, for clusters with far too many of them.
//!
//! **Invariant**: a deletion compares all that it relies on. Each evaluation is deleted at the
//! revision that was read, which every plan for it compares, too; the scheduler configuration is
//! unchanged, so the broker is paused; the job is unchanged.

use std::collections::{BTreeMap, BTreeSet};

use model::{ClientStatus, EvalId, FieldErrors, JobKey};
use placement::reschedule::{Purpose, ReplacementDecision, replacement_decision};
use state::{AllocView, JobStatus, Key, Snapshot, Write};

use super::scheduler_config;
use model::refusal::{Kind, Refusal};

/// The largest number of evaluations that one transaction deletes, with up to as many compares of
/// jobs.
pub const MAX_DELETED: usize = 500;

/// The reason why no evaluation is deleted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EvaluationRefusal {
    #[error(transparent)]
    Invalid(#[from] FieldErrors),
    #[error(
        "the eval-broker hands evaluations out: pause it first, with 'kafila operator scheduler \
         set-config -pause-eval-broker=true'"
    )]
    NotPaused,
    #[error("no evaluation {id}: 'kafila eval list' shows those that are kept")]
    NotFound { id: EvalId },
    /// Source: Nomad's text, as far as the colon.
    #[error("eval {id} is not safe to delete: {reason}")]
    NotSafe { id: EvalId, reason: String },
}

impl Refusal for EvaluationRefusal {
    fn kind(&self) -> Kind {
        match self {
            Self::Invalid(_) => Kind::Invalid,
            Self::NotFound { .. } => Kind::NotFound,
            Self::NotPaused | Self::NotSafe { .. } => Kind::Precondition,
        }
    }

    fn field_errors(&self) -> Option<&FieldErrors> {
        match self {
            Self::Invalid(errors) => Some(errors),
            _ => None,
        }
    }
}

/// Decides on deleting evaluations: all of them or none.
///
/// # Errors
/// See [`EvaluationRefusal`].
pub fn delete(
    snapshot: &Snapshot,
    ids: &BTreeSet<EvalId>,
) -> Result<Vec<Write>, EvaluationRefusal> {
    let mut errors = FieldErrors::default();
    if ids.is_empty() || ids.len() > MAX_DELETED {
        errors.push(
            "eval_ids",
            format!("{} ids: want 1 to {MAX_DELETED}", ids.len()),
        );
        return Err(errors.into());
    }
    if !snapshot.scheduler_config().pause_eval_broker {
        return Err(EvaluationRefusal::NotPaused);
    }
    let mut writes = vec![scheduler_config::guard(snapshot)];
    let mut jobs = BTreeMap::<&JobKey, EvalId>::new();
    for &id in ids {
        let eval = snapshot
            .eval(id)
            .ok_or(EvaluationRefusal::NotFound { id })?;
        let key = &eval.value.job;
        check_allocs(snapshot, id, key)?;
        jobs.insert(key, id);
        writes.push(Write::Delete {
            key: Key::Eval(id),
            modify_index: eval.modify_index,
        });
    }
    for (key, id) in jobs {
        check_rest(snapshot, key, id, ids)?;
        let modify_index = snapshot.job(key).map_or(0, |stored| stored.modify_index);
        writes.push(Write::require(Key::Job(key.clone()), modify_index));
    }
    Ok(writes)
}

/// Refuses an evaluation whose allocations live or still have to be replaced.
fn check_allocs(snapshot: &Snapshot, id: EvalId, key: &JobKey) -> Result<(), EvaluationRefusal> {
    if matches!(snapshot.job_status(key), None | Some(JobStatus::Dead)) {
        return Ok(());
    }
    for view in snapshot.allocs_by_eval(id) {
        let reason = match view.client_status() {
            ClientStatus::Running | ClientStatus::Unknown => "lives",
            ClientStatus::Pending if !view.alloc.is_server_terminal() => "is about to start",
            ClientStatus::Failed if is_to_be_replaced(snapshot, key, view) => {
                "has failed and is not replaced yet"
            }
            _ => continue,
        };
        let reason = format!("its allocation {} {reason}", view.alloc.id);
        return Err(EvaluationRefusal::NotSafe { id, reason });
    }
    Ok(())
}

/// Tells whether a failed allocation may still get a replacement.
fn is_to_be_replaced(snapshot: &Snapshot, key: &JobKey, view: &AllocView) -> bool {
    let group = snapshot
        .job(key)
        .and_then(|job| job.value.task_group(&view.alloc.task_group));
    let policy = group.and_then(|group| group.reschedule.as_ref());
    let decision = replacement_decision(
        &view.alloc,
        view.client.as_deref(),
        policy,
        Purpose::Deletion,
    );
    matches!(decision, ReplacementDecision::From(_))
}

/// Refuses to delete the last completed evaluation of a job: without it a dead job would look
/// pending.
fn check_rest(
    snapshot: &Snapshot,
    key: &JobKey,
    id: EvalId,
    ids: &BTreeSet<EvalId>,
) -> Result<(), EvaluationRefusal> {
    let Some(job) = snapshot.job(key).filter(|job| !job.value.stop) else {
        return Ok(());
    };
    let mut ended = snapshot
        .evals_by_job(key)
        .filter(|eval| eval.value.status.is_terminal())
        .peekable();
    if ended.peek().is_none() || ended.any(|eval| !ids.contains(&eval.value.id)) {
        return Ok(());
    }
    let reason = format!(
        "the status of job {:?} is read off its last one",
        job.value.id
    );
    Err(EvaluationRefusal::NotSafe { id, reason })
}

#[cfg(test)]
mod tests {
    use model::{EvalStatus, Job, NodeId, SchedulerConfiguration};
    use state::Entity;
    use test_kit::{Stored, builders};

    use super::*;

    fn pause(stored: &mut Stored, paused: bool) {
        let config = SchedulerConfiguration {
            pause_eval_broker: paused,
            ..SchedulerConfiguration::default()
        };
        stored.put(
            Key::SchedulerConfig,
            Entity::SchedulerConfig(Box::new(config)),
        );
    }

    fn put_eval(stored: &mut Stored, number: u128, job: &Job, status: EvalStatus) -> EvalId {
        let mut eval = builders::evaluation(number, job);
        eval.status = status;
        stored.put_eval(&eval);
        eval.id
    }

    fn put_alloc(stored: &mut Stored, number: u128, job: &Job, eval: EvalId, status: ClientStatus) {
        let mut alloc = builders::allocation(number, job, NodeId::from_random(1));
        alloc.eval_id = eval;
        stored.put_alloc(&alloc);
        stored.put_status(alloc.id, status);
    }

    fn reason(stored: &Stored, ids: &[EvalId]) -> String {
        let ids = ids.iter().copied().collect();
        delete(&stored.snapshot(), &ids).unwrap_err().to_string()
    }

    #[test]
    fn nothing_is_deleted_while_the_broker_is_not_paused() {
        let mut stored = Stored::default();
        let id = put_eval(
            &mut stored,
            1,
            &builders::batch("gone", 1),
            EvalStatus::Complete,
        );
        assert!(reason(&stored, &[id]).contains("-pause-eval-broker=true"));
        pause(&mut stored, true);
        let snapshot = stored.snapshot();
        let writes = delete(&snapshot, &[id].into()).unwrap();
        let expected = [
            scheduler_config::guard(&snapshot),
            Write::Delete {
                key: Key::Eval(id),
                modify_index: snapshot.eval(id).unwrap().modify_index,
            },
            Write::RequireAbsent {
                key: Key::Job(JobKey::new("default", "gone")),
            },
        ];
        assert_eq!(writes, expected);
        let other = EvalId::from_random(9);
        let missing = reason(&stored, &[other]);
        assert!(missing.starts_with(&format!("no evaluation {other}: ")));
        assert!(reason(&stored, &[]).contains("want 1 to 500"));
    }

    #[test]
    fn allocations_that_live_or_have_to_be_replaced_keep_their_evaluation() {
        for (status, text) in [
            (ClientStatus::Running, "lives"),
            (ClientStatus::Unknown, "lives"),
            (ClientStatus::Pending, "is about to start"),
            (ClientStatus::Failed, "has failed and is not replaced yet"),
        ] {
            let mut stored = Stored::default();
            pause(&mut stored, true);
            let job = builders::service("web", 2);
            stored.put_job(&job);
            let first = put_eval(&mut stored, 1, &job, EvalStatus::Complete);
            let last = put_eval(&mut stored, 2, &job, EvalStatus::Complete);
            put_alloc(&mut stored, 1, &job, first, status);
            // Otherwise the job is dead, and every evaluation may be deleted.
            put_alloc(&mut stored, 2, &job, last, ClientStatus::Running);
            let found = reason(&stored, &[first]);
            assert!(
                found.starts_with(&format!("eval {first} is not safe")),
                "{found}"
            );
            assert!(found.ends_with(text), "{found}");
            // One that must stay keeps all others.
            let other = put_eval(&mut stored, 3, &job, EvalStatus::Complete);
            assert_eq!(reason(&stored, &[first, other]), found);
            delete(&stored.snapshot(), &[other].into()).unwrap();
        }
    }

    #[test]
    fn a_failed_allocation_that_is_replaced_keeps_nothing() {
        let mut stored = Stored::default();
        pause(&mut stored, true);
        let job = builders::service("web", 1);
        stored.put_job(&job);
        let first = put_eval(&mut stored, 1, &job, EvalStatus::Complete);
        put_alloc(&mut stored, 1, &job, first, ClientStatus::Failed);
        let last = put_eval(&mut stored, 2, &job, EvalStatus::Complete);
        let mut successor = builders::allocation(2, &job, NodeId::from_random(1));
        successor.eval_id = last;
        let mut replaced = builders::allocation(1, &job, NodeId::from_random(1));
        successor.previous_alloc = Some(replaced.id);
        stored.put_alloc(&successor);
        (replaced.eval_id, replaced.next_alloc) = (first, Some(successor.id));
        stored.put_alloc(&replaced);
        delete(&stored.snapshot(), &[first].into()).unwrap();
    }

    #[test]
    fn pending_ones_go_and_the_last_that_has_ended_stays() {
        let mut stored = Stored::default();
        pause(&mut stored, true);
        let job = builders::batch("report", 1);
        stored.put_job(&job);
        let pending = put_eval(&mut stored, 1, &job, EvalStatus::Pending);
        delete(&stored.snapshot(), &[pending].into()).unwrap();
        let old = put_eval(&mut stored, 2, &job, EvalStatus::Complete);
        let last = put_eval(&mut stored, 3, &job, EvalStatus::Complete);
        delete(&stored.snapshot(), &[pending, old].into()).unwrap();
        let found = reason(&stored, &[old, last]);
        assert!(found.ends_with("read off its last one"), "{found}");
        let stopped = Job { stop: true, ..job };
        stored.put_job(&stopped);
        delete(&stored.snapshot(), &[pending, old, last].into()).unwrap();
    }
}
