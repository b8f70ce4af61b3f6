//! The decision about one deployment in a snapshot.

use model::{Deployment, DeploymentStatus, EvalId, Indexed, Job, Timestamp};
use placement::reschedule::{Purpose, ReplacementDecision, replacement_decision};
use state::{AllocView, Snapshot};

use crate::action::{Action, Cause};
use crate::config::Config;
use crate::memory::Memory;
use crate::{outcome, progress, requests};

/// The decision about a deployment.
#[derive(Debug, Default)]
pub(crate) struct Decision {
    pub(crate) action: Option<Action>,
    /// The time of the next decision if nothing changes.
    pub(crate) next_at: Option<Timestamp>,
}

impl Decision {
    fn act(action: Action) -> Self {
        Self {
            action: Some(action),
            next_at: None,
        }
    }
}

/// Judges one deployment.
pub(crate) fn decide(
    config: &Config,
    now: Timestamp,
    snapshot: &Snapshot,
    deployment: &Indexed<Deployment>,
    memory: &mut Memory,
    next_id: &mut dyn FnMut() -> EvalId,
) -> Decision {
    let value = &deployment.value;
    if value.status == DeploymentStatus::Successful {
        return Decision {
            action: outcome::mark_stable(snapshot, value),
            next_at: None,
        };
    }
    if !value.status.is_active() {
        return Decision::default();
    }
    let job = snapshot
        .job(&value.job)
        .filter(|job| job.create_index == value.job_create_index);
    let Some(job) = job else {
        return Decision::act(outcome::cancel(snapshot, deployment, now));
    };
    // A stopped or newer job ends the deployment with its next evaluation, which its change has
    // created. A paused deployment waits for a user.
    let superseded = job.value.stop || job.value.version != value.job_version;
    if superseded || value.status == DeploymentStatus::Paused {
        return Decision::default();
    }
    if let Some((cause, revert_wanted)) = find_failure(now, snapshot, value, &job.value) {
        let revert = outcome::choose_revert(snapshot, job, revert_wanted, now);
        return Decision::act(outcome::fail(
            snapshot,
            deployment,
            job,
            cause,
            revert,
            next_id(),
            now,
        ));
    }
    if let Some(action) = requests::auto_promote(snapshot, deployment, now, next_id) {
        return Decision::act(action);
    }
    let eval_due = eval_due(config, now, snapshot, value, memory);
    if eval_due.is_some_and(|due| due <= now) {
        return Decision::act(outcome::evaluate(value, &job.value, next_id(), now));
    }
    Decision {
        action: None,
        next_at: earliest(eval_due, next_deadline(snapshot, value)),
    }
}

/// Returns the cause of the failure if the deployment has failed, and whether to revert the job.
fn find_failure(
    now: Timestamp,
    snapshot: &Snapshot,
    deployment: &Deployment,
    job: &Job,
) -> Option<(Cause, bool)> {
    let mut has_overdue_group = false;
    let mut revert = false;
    for (name, deadline) in unsatisfied(snapshot, deployment) {
        if deadline.is_some_and(|deadline| deadline <= now) {
            has_overdue_group = true;
            revert |= deployment.groups[name].auto_revert;
        }
    }
    if has_overdue_group {
        return Some((Cause::ProgressDeadline, revert));
    }
    let unrecoverable = snapshot
        .allocs_by_deployment(deployment.id)
        .find(|view| cannot_recover(view, deployment, job))?;
    let group = deployment.groups.get(&*unrecoverable.alloc.task_group);
    // A canary may fail after the deadline, while the deployment waits for a promotion. Then the
    // cause is the deadline.
    let is_promotion_overdue = deployment.groups.iter().any(|(name, group)| {
        let deadline = progress::require_progress_by(snapshot, deployment, name);
        group.awaits_promotion() && deadline.is_some_and(|deadline| deadline <= now)
    });
    let cause = if is_promotion_overdue {
        Cause::ProgressDeadline
    } else {
        Cause::Unhealthy
    };
    Some((cause, group.is_some_and(|group| group.auto_revert)))
}

/// Tells whether an allocation is unhealthy and must not be replaced: its group has no progress
/// deadline, or no reschedule attempt left.
fn cannot_recover(view: &AllocView, deployment: &Deployment, job: &Job) -> bool {
    let unhealthy = view.health().is_some_and(|health| !health.healthy);
    if !unhealthy {
        return false;
    }
    let Some(group) = deployment.groups.get(&*view.alloc.task_group) else {
        return false;
    };
    let policy = job
        .task_group(&view.alloc.task_group)
        .and_then(|group| group.reschedule);
    let client = view.client.as_deref();
    match replacement_decision(&view.alloc, client, policy.as_ref(), Purpose::Recovery) {
        ReplacementDecision::NotNeeded => false,
        ReplacementDecision::Never => true,
        ReplacementDecision::From(_) => group.progress_deadline.is_zero(),
    }
}

/// Returns the groups that have not reached the goal of their stage, each with its progress deadline, if it
/// has one.
fn unsatisfied<'a>(
    snapshot: &'a Snapshot,
    deployment: &'a Deployment,
) -> impl Iterator<Item = (&'a str, Option<Timestamp>)> {
    deployment.groups.iter().filter_map(move |(name, group)| {
        if progress::is_satisfied(snapshot, deployment, name, group) {
            return None;
        }
        Some((
            name.as_str(),
            progress::require_progress_by(snapshot, deployment, name),
        ))
    })
}

fn next_deadline(snapshot: &Snapshot, deployment: &Deployment) -> Option<Timestamp> {
    unsatisfied(snapshot, deployment)
        .filter_map(|(_, deadline)| deadline)
        .min()
}

/// Returns the time of the evaluation that shows new health to the scheduler; `None`: a completed or
/// pending evaluation covers all of it.
///
/// While allocations of the deployment have no health yet, a short window batches reports. Once all have
/// reported, the evaluation is due at once.
fn eval_due(
    config: &Config,
    now: Timestamp,
    snapshot: &Snapshot,
    deployment: &Deployment,
    memory: &mut Memory,
) -> Option<Timestamp> {
    if memory.health_index <= snapshot.covered_index(&deployment.job, now) {
        memory.eval_due = None;
        return None;
    }
    let more_to_come = snapshot
        .allocs_by_deployment(deployment.id)
        .any(|view| view.health().is_none() && !view.is_terminal());
    if !more_to_come {
        return Some(now);
    }
    let due = *memory
        .eval_due
        .get_or_insert(now.plus(config.health_window));
    Some(due)
}

fn earliest(one: Option<Timestamp>, other: Option<Timestamp>) -> Option<Timestamp> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}
