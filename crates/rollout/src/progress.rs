//! How far a deployment has come, and until when it must get further: derived, never stored.

use std::time::Duration;

use model::{Deployment, DeploymentGroup, Timestamp};
use state::{AllocView, Snapshot};

/// Returns when `group` must have progressed, or it fails; `None`: no deadline, or nothing of it
/// has been placed yet.
///
/// The clock starts with the first allocation placed, and starts anew with each that becomes
/// healthy and when a user resumes or promotes the deployment.
/// Source: Nomad's public behaviour of `RequireProgressBy`.
pub fn require_progress_by(
    snapshot: &Snapshot,
    deployment: &Deployment,
    group: &str,
) -> Option<Timestamp> {
    let deadline = deployment.groups.get(group)?.progress_deadline;
    if deadline == Duration::ZERO {
        return None;
    }
    let mut first_placed: Option<Timestamp> = None;
    // A user's change is what moves the deployment's own time while it is active.
    let mut last_step = deployment.modify_time;
    for view in allocs_of(snapshot, deployment, group) {
        // One that was updated in place is older than the deployment it has joined.
        let placed = view.alloc.create_time.max(deployment.create_time);
        first_placed = Some(first_placed.map_or(placed, |first| first.min(placed)));
        if let Some(health) = view.health().filter(|health| health.healthy) {
            last_step = last_step.max(health.time);
        }
    }
    Some(first_placed?.max(last_step).plus(deadline))
}

/// Tells whether `healthy` allocations are what the group wants at this stage: all its canaries
/// until it is promoted (to wait for a user's promotion is no failure), then everything.
pub(crate) fn is_satisfied(group: &DeploymentGroup, healthy: u32) -> bool {
    if group.desired_canaries > 0 && !group.promoted {
        healthy >= group.desired_canaries
    } else {
        healthy >= group.desired_total
    }
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
