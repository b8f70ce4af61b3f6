//! Progress and deadlines of deployments: derived from the replica, never stored.

use std::time::Duration;

use model::{Deployment, DeploymentGroup, Timestamp};
use state::{AllocView, Snapshot};

/// Returns when `group` must have progressed, or it fails; `None`: no deadline, or nothing of it
/// has been placed yet.
///
/// The clock starts with the first placement. It restarts with each allocation that becomes healthy,
/// and when a user resumes or promotes the deployment. The latter is ignored for an ended deployment,
/// whose modify time is that of its end.
/// Source: Nomad's public behaviour of `RequireProgressBy`.
pub fn require_progress_by(
    snapshot: &Snapshot,
    deployment: &Deployment,
    group: &str,
) -> Option<Timestamp> {
    require_progress_by_at(snapshot, deployment, group, u64::MAX)
}

/// Does the same for a deployment at `index`, as far as its allocations have not changed since.
pub fn require_progress_by_at(
    snapshot: &Snapshot,
    deployment: &Deployment,
    group: &str,
    index: u64,
) -> Option<Timestamp> {
    let deadline = deployment.groups.get(group)?.progress_deadline;
    if deadline == Duration::ZERO {
        return None;
    }
    let mut first_placed: Option<Timestamp> = None;
    // While a deployment is active, only a user's change updates its modify time.
    let mut last_step = if deployment.status.is_active() {
        deployment.modify_time
    } else {
        deployment.create_time
    };
    for view in allocs_of(snapshot, deployment, group) {
        if view.create_index > index {
            continue;
        }
        // One that was updated in place is older than the deployment it has joined.
        let placed = view.alloc.create_time.max(deployment.create_time);
        first_placed = Some(first_placed.map_or(placed, |first| first.min(placed)));
        let health = view.health().filter(|_| view.client_modify_index <= index);
        if let Some(health) = health.filter(|health| health.healthy) {
            last_step = last_step.max(health.time);
        }
    }
    Some(first_placed?.max(last_step).plus(deadline))
}

/// Tells whether a group has reached the goal of its stage: all canaries healthy until it is promoted,
/// then the desired number of healthy allocations.
///
/// A group that has reached its goal has no deadline ([`require_progress_by`]). So the deadline does not end
/// a wait for a user's promotion, even if canaries have ended meanwhile: the user decides. An unhealthy
/// canary that cannot be replaced still fails the deployment (`decision::cannot_recover`). With
/// `auto_promote` only running canaries count. Otherwise a rollout whose canaries were healthy one after
/// the other would never end.
pub(crate) fn is_satisfied(
    snapshot: &Snapshot,
    deployment: &Deployment,
    name: &str,
    group: &DeploymentGroup,
) -> bool {
    let healthy = allocs_of(snapshot, deployment, name)
        .filter(|view| view.health().is_some_and(|health| health.healthy));
    if !group.awaits_promotion() {
        return count(healthy.filter(|view| !view.is_terminal())) >= group.desired_total;
    }
    let canaries = healthy.filter(|view| group.placed_canaries.contains(&view.alloc.id));
    if deployment.promotes_itself() {
        count(canaries.filter(|view| !view.is_terminal())) >= group.desired_canaries
    } else {
        count(canaries) >= group.desired_canaries
    }
}

/// Returns the canaries of a group that run and are healthy, ordered by id.
pub fn healthy_canaries<'a>(
    snapshot: &'a Snapshot,
    deployment: &'a Deployment,
    name: &'a str,
) -> impl Iterator<Item = &'a AllocView> {
    let group = deployment.groups.get(name);
    allocs_of(snapshot, deployment, name).filter(move |view| {
        group.is_some_and(|group| group.placed_canaries.contains(&view.alloc.id))
            && !view.is_terminal()
            && view.health().is_some_and(|health| health.healthy)
    })
}

fn count<'a>(views: impl Iterator<Item = &'a AllocView>) -> u32 {
    u32::try_from(views.count()).unwrap_or(u32::MAX)
}

/// Returns a group's allocations of a deployment, ordered by id.
pub(crate) fn allocs_of<'a>(
    snapshot: &'a Snapshot,
    deployment: &Deployment,
    group: &'a str,
) -> impl Iterator<Item = &'a AllocView> {
    snapshot
        .allocs_by_deployment(deployment.id)
        .filter(move |view| &*view.alloc.task_group == group)
}
