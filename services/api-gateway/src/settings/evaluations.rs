//! Evaluations that an operator deletes, for when there are too many of them.
//!
//! **Invariant**: what a deletion goes by is compared with it. Each evaluation is deleted at the
//! revision that was looked at, which every plan of it compares too; the scheduler configuration is
//! as it was, so the broker is paused; the job is as it was.

use std::collections::{BTreeMap, BTreeSet};

use model::{ClientStatus, EvalId, FieldErrors, JobKey};
use state::{AllocView, JobStatus, Key, Snapshot};

use super::scheduler_config;
use crate::writes::Write;

/// How many go in one transaction, with as many jobs that are compared.
pub const MAX_DELETED: usize = 500;

/// Why evaluations stay. Final only when the snapshot was as new as the request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error(transparent)]
    Invalid(#[from] FieldErrors),
    #[error(
        "the eval-broker hands evaluations out: pause it first, with 'kafila operator scheduler \
         set-config -pause-eval-broker=true'"
    )]
    NotPaused,
    #[error("no evaluation {id}")]
    NotFound { id: EvalId },
    /// Source: Nomad's text, as far as the colon.
    #[error("eval {id} is not safe to delete: {reason}")]
    NotSafe { id: EvalId, reason: String },
}

/// Decides on deleting evaluations; returns what is written.
///
/// # Errors
/// See [`Refusal`]; one that cannot go keeps all of them.
pub fn delete(snapshot: &Snapshot, ids: &BTreeSet<EvalId>) -> Result<Vec<Write>, Refusal> {
    let mut errors = FieldErrors::default();
    if ids.is_empty() || ids.len() > MAX_DELETED {
        errors.push(
            "eval_ids",
            format!("{} ids: want 1 to {MAX_DELETED}", ids.len()),
        );
        return Err(errors.into());
    }
    if !snapshot.scheduler_config().pause_eval_broker {
        return Err(Refusal::NotPaused);
    }
    let mut writes = vec![scheduler_config::guard(snapshot)];
    let mut jobs = BTreeMap::<&JobKey, EvalId>::new();
    for &id in ids {
        let eval = snapshot.eval(id).ok_or(Refusal::NotFound { id })?;
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
        let job = Key::Job(key.clone());
        writes.push(match snapshot.job(key) {
            Some(stored) => Write::RequireUnchanged {
                key: job,
                modify_index: stored.modify_index,
            },
            None => Write::RequireAbsent { key: job },
        });
    }
    Ok(writes)
}

/// Refuses an evaluation whose allocations live, or are still to be replaced.
fn check_allocs(snapshot: &Snapshot, id: EvalId, key: &JobKey) -> Result<(), Refusal> {
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
        return Err(Refusal::NotSafe { id, reason });
    }
    Ok(())
}

/// Tells whether a failed allocation may still get a successor, to be on the safe side without
/// asking how many attempts are left.
fn is_to_be_replaced(snapshot: &Snapshot, key: &JobKey, view: &AllocView) -> bool {
    let mut others = snapshot.allocs_by_job(key);
    if view.alloc.is_server_terminal()
        || others.any(|other| other.alloc.previous_alloc == Some(view.alloc.id))
    {
        return false;
    }
    let group = snapshot
        .job(key)
        .and_then(|job| job.value.task_group(&view.alloc.task_group));
    let policy = group.and_then(|group| group.reschedule.as_ref());
    policy.is_some_and(|policy| policy.unlimited || policy.attempts > 0)
}

/// Refuses to make a job that has ended look as if it had never been looked at.
fn check_rest(
    snapshot: &Snapshot,
    key: &JobKey,
    id: EvalId,
    ids: &BTreeSet<EvalId>,
) -> Result<(), Refusal> {
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
    Err(Refusal::NotSafe { id, reason })
}

#[cfg(test)]
mod tests {
    use model::{EvalStatus, Job, NodeId, SchedulerConfiguration};
    use state::Entity;
    use test_kit::builders;

    use super::*;
    use crate::testing::Stored;

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
    fn nothing_is_deleted_while_evaluations_are_handed_out() {
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
        assert_eq!(reason(&stored, &[other]), format!("no evaluation {other}"));
        assert!(reason(&stored, &[]).contains("want 1 to 500"));
    }

    #[test]
    fn what_an_evaluation_has_placed_keeps_it_while_it_lives_or_is_to_be_replaced() {
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
            // Else it is dead, and nobody goes by anything.
            put_alloc(&mut stored, 2, &job, last, ClientStatus::Running);
            let found = reason(&stored, &[first]);
            assert!(
                found.starts_with(&format!("eval {first} is not safe")),
                "{found}"
            );
            assert!(found.ends_with(text), "{found}");
            // One that cannot go keeps those that could.
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
        successor.previous_alloc = Some(builders::allocation(1, &job, NodeId::from_random(1)).id);
        stored.put_alloc(&successor);
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
