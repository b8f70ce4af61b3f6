//! Plan: what a registration would come to, found out on a private copy of the state.
//!
//! The copy gets the very writes that [`mod@register`] would make, and the scheduler looks at it as a
//! worker would: whatever holds of the one holds of the other, until somebody else is faster.
//! Nothing here is written.

use std::collections::BTreeMap;

use jobdiff::{GroupUpdates, JobDiff};
use model::plan::Stop;
use model::{AllocMetric, EvalStatus, Evaluation, Job, NodeId};
use scheduler::DesiredUpdates;
use state::{AllocView, Change, Key, Snapshot};

use super::{Proposal, Refusal, RegisterRequest, Stamp, register};
use crate::writes::Write;

/// What would happen.
#[derive(Clone, Debug, PartialEq)]
pub struct DryRun {
    /// The job's as it is; 0: there is none.
    pub job_modify_index: u64,
    /// Task group → what the scheduler would do about it.
    pub updates: BTreeMap<String, GroupUpdates>,
    /// Task group → why some of it would have no place.
    pub failed_task_groups: BTreeMap<String, AllocMetric>,
    /// Evaluations that the scheduler would make.
    pub created_evals: Vec<Evaluation>,
    /// Allocations of other jobs that would have to go.
    pub preempted: Vec<AllocView>,
    pub diff: Option<JobDiff>,
}

/// Returns what a registration of `job` would write.
///
/// # Errors
/// It would be refused for what it is. How many evaluations wait does not matter, nor whether
/// registrations are taken at all: this one joins no queue.
pub fn propose(snapshot: &Snapshot, job: &Job, stamp: &Stamp) -> Result<Proposal, Refusal> {
    let request = RegisterRequest {
        max_open_evals: usize::MAX,
        ..RegisterRequest::default()
    };
    register::propose(snapshot, job, &request, stamp)
}

/// Runs the scheduler on what would be there after `proposal`, which [`propose`] returned.
///
/// Takes as long as scheduling does: milliseconds, or seconds for a very large job.
///
/// # Errors
/// The scheduler would give up on the job, whatever nodes there are.
pub fn dry_run(
    snapshot: &Snapshot,
    job: &Job,
    proposal: Proposal,
    stamp: &Stamp,
    seed: u64,
    with_diff: bool,
) -> Result<DryRun, Refusal> {
    let stored = snapshot.job(&job.key()).map(|stored| &stored.value);
    if !proposal.is_evaluated {
        // Nothing of it runs, so there is nothing to schedule.
        return Ok(DryRun {
            job_modify_index: proposal.job_modify_index,
            updates: BTreeMap::new(),
            failed_task_groups: BTreeMap::new(),
            created_evals: Vec::new(),
            preempted: Vec::new(),
            diff: with_diff.then(|| jobdiff::diff(stored, Some(job), true)),
        });
    }
    let foreseen = foresee(snapshot, proposal.writes);
    let eval = foreseen
        .eval(stamp.eval_id)
        .expect("a registration makes the evaluation of its stamp");
    let decision = scheduler::schedule(&foreseen, eval, stamp.now, seed);
    let outcome = decision
        .plan
        .eval_outcome
        .expect("a decision says how the evaluation ends");
    check_outcome(&outcome)?;
    let updates = decision.desired_updates.into_iter();
    let updates = updates
        .map(|(group, updates)| (group, counted(updates)))
        .collect();
    let diff = with_diff.then(|| {
        let mut diff = jobdiff::diff(stored, Some(job), true);
        jobdiff::annotate(&mut diff, stored, Some(job), &updates);
        diff
    });
    Ok(DryRun {
        preempted: preempted(&foreseen, &decision.plan.preemptions),
        job_modify_index: proposal.job_modify_index,
        failed_task_groups: outcome.failed_task_groups,
        created_evals: decision.plan.followup_evals,
        diff,
        updates,
    })
}

/// Returns those that would be evicted, in the order of their jobs and names.
fn preempted(snapshot: &Snapshot, evictions: &BTreeMap<NodeId, Vec<Stop>>) -> Vec<AllocView> {
    let ids = evictions.values().flatten().map(|stop| stop.alloc_id);
    let mut views: Vec<_> = ids.filter_map(|id| snapshot.alloc(id)).cloned().collect();
    views.sort_by_key(|view| {
        let alloc = &view.alloc;
        (alloc.job_key(), alloc.task_group.clone(), alloc.name_index)
    });
    views
}

fn check_outcome(outcome: &Evaluation) -> Result<(), Refusal> {
    if outcome.status == EvalStatus::Failed {
        let reason = outcome.status_description.clone();
        return Err(Refusal::Unschedulable { reason });
    }
    Ok(())
}

/// Returns the state as it would be once `writes` were made, next of all.
pub(super) fn foresee(snapshot: &Snapshot, writes: Vec<Write>) -> Snapshot {
    let revision = snapshot.index().saturating_add(1);
    let mut state = snapshot.to_state();
    let changes = writes
        .into_iter()
        .filter_map(|write| change(snapshot, write, revision));
    state.apply(revision, changes);
    state.snapshot()
}

fn change(snapshot: &Snapshot, write: Write, revision: u64) -> Option<Change> {
    match write {
        Write::Create { key, entity } => Some(Change::Put {
            key,
            entity,
            create_index: revision,
            modify_index: revision,
        }),
        Write::Update { key, entity, .. } => {
            let stored = match &key {
                Key::Job(job) => snapshot.job(job).map(|stored| stored.create_index),
                // A registration updates nothing else.
                _ => None,
            };
            Some(Change::Put {
                key,
                entity,
                create_index: stored.unwrap_or(revision),
                modify_index: revision,
            })
        }
        Write::Delete { key, .. } => Some(Change::Delete { key }),
        Write::RequireUnchanged { .. } | Write::RequireAbsent { .. } => None,
    }
}

/// Takes the scheduler's counts one by one: one that is added there has to be told here too.
fn counted(updates: DesiredUpdates) -> GroupUpdates {
    let DesiredUpdates {
        ignore,
        place,
        migrate,
        stop,
        in_place_update,
        destructive_update,
        reschedule_now,
        reschedule_later,
        canary,
        disconnect,
        reconnect,
        preemptions,
    } = updates;
    GroupUpdates {
        ignore: ignore.into(),
        place: place.into(),
        migrate: migrate.into(),
        stop: stop.into(),
        in_place_update: in_place_update.into(),
        destructive_update: destructive_update.into(),
        reschedule_now: reschedule_now.into(),
        reschedule_later: reschedule_later.into(),
        canary: canary.into(),
        disconnect: disconnect.into(),
        reconnect: reconnect.into(),
        preemptions: preemptions.into(),
    }
}

#[cfg(test)]
mod tests {
    use test_kit::builders;

    use super::*;

    #[test]
    fn an_evaluation_that_would_fail_is_a_refusal_with_its_reason() {
        let job = builders::service("web", 1);
        let mut outcome = builders::evaluation(1, &job);
        for status in EvalStatus::ALL {
            outcome.status = status;
            outcome.status_description = "no such type".to_owned();
            let refusal = check_outcome(&outcome)
                .err()
                .map(|refusal| refusal.to_string());
            let expected =
                "the job could be registered, but its evaluation would fail: no such type";
            let expected = (status == EvalStatus::Failed).then(|| expected.to_owned());
            assert_eq!(refusal, expected, "{status:?}");
        }
    }
}
