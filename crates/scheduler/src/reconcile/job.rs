//! Reconciliation of one service or batch job: its groups, and its deployment.

use std::collections::{BTreeMap, BTreeSet};

use model::{AllocId, DeploymentGroup, DeploymentStatus, Indexed, Job};
use placement::Requirements;
use state::AllocView;

use crate::in_place::InPlace;
use crate::reconcile::changes::{JobChanges, StopAsk};
use crate::reconcile::context::Context;
use crate::reconcile::group::stop_all;
use crate::reconcile::reconciler::GroupReconciler;
use crate::reconcile::spec_change::{Comparison, SpecChange};
use crate::run_rng::RunRng;

/// Compares all allocations of the job with its specification; `job` is `None` when it is stopped or
/// gone.
pub(crate) fn reconcile<'a>(
    mut context: Context<'a>,
    job: Option<&'a Indexed<Job>>,
    in_place: &mut InPlace<'a>,
) -> (JobChanges<'a>, RunRng) {
    let mut changes = JobChanges::default();
    let mut allocs = BTreeMap::<String, Vec<&'a AllocView>>::new();
    for group in job.iter().flat_map(|job| &job.value.task_groups) {
        allocs.insert(group.name.clone(), Vec::new());
    }
    for view in context.snapshot.allocs_by_job(context.key) {
        if context.is_lost_while_stopping(view) {
            changes.lost_while_stopping.push(StopAsk::lost(view));
        }
        match allocs.get_mut(&*view.alloc.task_group) {
            Some(group) => group.push(view),
            None => {
                allocs.insert(view.alloc.task_group.to_string(), vec![view]);
            }
        }
    }
    for (name, allocs) in allocs {
        let wanted = job.and_then(|job| Some((job, job.value.task_group(&name)?)));
        let group = match wanted.filter(|(_, group)| group.count > 0) {
            Some((job, group)) => GroupReconciler {
                context: &mut context,
                job,
                group,
                in_place,
            }
            .run(allocs),
            None => stop_all(&context, name, allocs),
        };
        changes
            .generations
            .outgoing
            .extend(group.outgoing.iter().copied());
        let canaries = group.canaries.iter().copied();
        changes.generations.canaries.extend(canaries);
        changes.groups.push(group);
    }
    if let Some(job) = job {
        changes.generations.version = job.value.version;
        settle_deployment(&mut context, job, &mut changes);
    }
    changes.deployment_updates = context.rollouts.updates;
    changes.delayed_evals = context.delayed_evals;
    (changes, context.rng)
}

/// Returns the live allocations of a service or batch job that will be stopped in any case: those that
/// need new tasks, and stale canaries.
///
/// Empty when no group has distinctness constraints, which alone need it.
pub(crate) fn leaving<'a>(
    context: &Context<'a>,
    job: Option<&'a Indexed<Job>>,
    requirements: &BTreeMap<String, Requirements>,
) -> BTreeSet<AllocId> {
    let is_anywhere = |job: &&Indexed<Job>| {
        let job_type = job.value.job_type;
        !job_type.is_per_node()
    };
    let Some(job) = job.filter(is_anywhere) else {
        return BTreeSet::new();
    };
    if !requirements.values().any(Requirements::is_distinct) {
        return BTreeSet::new();
    }
    let wanted = job.value.task_groups.iter().filter(|group| group.count > 0);
    let comparisons = wanted.map(|group| {
        let comparison = Comparison::new(context.snapshot, context.key, job, group);
        (group.name.as_str(), comparison)
    });
    let mut comparisons: BTreeMap<_, _> = comparisons.collect();
    let live = context.snapshot.allocs_by_job(context.key);
    let leaving = live.filter(|view| {
        let comparison = comparisons.get_mut(&*view.alloc.task_group);
        let stays = comparison.is_some_and(|one| one.of(view) != SpecChange::Destructive);
        !view.is_terminal() && (!stays || context.rollouts.is_stale_canary(view))
    });
    leaving.map(|view| view.alloc.id).collect()
}

/// Creates, extends or completes the deployment of the job's version.
fn settle_deployment<'a>(
    context: &mut Context<'a>,
    job: &Indexed<Job>,
    changes: &mut JobChanges<'a>,
) {
    let current = context.rollouts.current.as_ref();
    changes.current_deployment = current.map(|current| current.value.clone());
    let entering: BTreeMap<String, DeploymentGroup> = changes
        .groups
        .iter_mut()
        .filter_map(|group| Some((group.name.clone(), group.deployment_group.take()?)))
        .collect();
    if entering.is_empty() {
        changes.deployment_id = context.rollouts.active_id();
        if changes.groups.iter().all(|group| group.is_complete) {
            context.rollouts.complete();
        }
        return;
    }
    let mut deployment = match &context.rollouts.current {
        Some(current) => current.value.clone(),
        None => context.new_deployment(job),
    };
    deployment.groups.extend(entering);
    if deployment.status == DeploymentStatus::Running {
        deployment
            .running_description()
            .clone_into(&mut deployment.status_description);
    }
    deployment.modify_time = context.now;
    changes.deployment_id = Some(deployment.id);
    changes.deployment = Some(deployment);
}
