//! Dry run of a registration: the scheduler's decision on a private copy of the state.
//!
//! The copy gets the writes that a registration would commit, and the scheduler runs on it as a
//! worker would. The result holds until another write comes first. Nothing is stored.

use std::collections::BTreeMap;

use admission::jobs::{JobRefusal, Proposal, RequestContext};
use jobdiff::{GroupUpdates, JobDiff};
use model::plan::Stop;
use model::{AllocMetric, EvalStatus, Evaluation, Job, NodeId};
use scheduler::DesiredUpdates;
use state::{AllocView, Snapshot};

/// The result of a dry run.
#[derive(Clone, Debug, PartialEq)]
pub struct DryRun {
    /// The index of the stored job; 0: there is none.
    pub job_modify_index: u64,
    /// Task group → the scheduler's updates.
    pub updates: BTreeMap<String, GroupUpdates>,
    /// Task group → why allocations would not be placed.
    pub failed_task_groups: BTreeMap<String, AllocMetric>,
    /// Evaluations that the scheduler would create.
    pub created_evals: Vec<Evaluation>,
    /// Allocations of other jobs that would be preempted.
    pub preempted: Vec<AllocView>,
    pub diff: Option<JobDiff>,
}

/// Runs the scheduler on the state after `proposal`, which
/// [`admission::jobs::register::propose_dry_run`] returned.
///
/// Takes as long as scheduling does: milliseconds, or seconds for a very large job.
///
/// # Errors
/// The scheduler would give up on the job, whatever nodes there are.
pub fn dry_run(
    snapshot: &Snapshot,
    job: &Job,
    proposal: Proposal,
    context: &RequestContext,
    seed: u64,
    with_diff: bool,
) -> Result<DryRun, JobRefusal> {
    let stored = snapshot.job(&job.key()).map(|stored| &stored.value);
    if !proposal.is_evaluated {
        // A parent job has no allocations, so there is nothing to schedule.
        return Ok(DryRun {
            job_modify_index: proposal.job_modify_index,
            updates: BTreeMap::new(),
            failed_task_groups: BTreeMap::new(),
            created_evals: Vec::new(),
            preempted: Vec::new(),
            diff: with_diff.then(|| jobdiff::diff(stored, Some(job), true)),
        });
    }
    let simulated = snapshot.after(proposal.writes);
    let eval = simulated
        .eval(context.eval_id)
        .expect("a registration makes the evaluation of its context");
    let decision = scheduler::schedule(&simulated, eval, context.now, seed);
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
        preempted: preempted(&simulated, &decision.plan.preemptions),
        job_modify_index: proposal.job_modify_index,
        failed_task_groups: outcome.failed_task_groups,
        created_evals: decision.plan.followup_evals,
        diff,
        updates,
    })
}

/// Returns the allocations that would be preempted, ordered by job and name.
fn preempted(snapshot: &Snapshot, evictions: &BTreeMap<NodeId, Vec<Stop>>) -> Vec<AllocView> {
    let ids = evictions.values().flatten().map(|stop| stop.alloc_id);
    let mut views: Vec<_> = ids.filter_map(|id| snapshot.alloc(id)).cloned().collect();
    views.sort_by_key(|view| {
        let alloc = &view.alloc;
        (alloc.job_key(), alloc.task_group.clone(), alloc.name_index)
    });
    views
}

fn check_outcome(outcome: &Evaluation) -> Result<(), JobRefusal> {
    if outcome.status == EvalStatus::Failed {
        let reason = outcome.status_description.clone();
        return Err(JobRefusal::Unschedulable { reason });
    }
    Ok(())
}

/// Converts the scheduler's counts one by one, so that the compiler finds a new one.
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
mod tests;
