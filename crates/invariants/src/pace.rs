//! Check of the pace of updates.

use std::collections::BTreeMap;

use model::{ClientStatus, DesiredStatus, JobKey, JobType, NodeStatus};
use state::{AllocView, Key, Snapshot};

use crate::addresses::is_off_node;
use crate::violation::{Fact, Violation};

/// Checks the replacements of one revision: together with new allocations that are not healthy yet,
/// they are at most `max_parallel` of a service's group.
pub(crate) fn check_pace(
    before: &Snapshot,
    after: &Snapshot,
    keys: impl Iterator<Item = Key>,
    found: &mut Vec<Violation>,
) {
    let mut replaced = BTreeMap::<(JobKey, u64, String), u32>::new();
    for key in keys {
        let Key::Alloc(id) = key else { continue };
        let Some(new) = after.alloc(id).filter(|_| before.alloc(id).is_none()) else {
            continue;
        };
        let old = new.alloc.previous_alloc.and_then(|old| before.alloc(old));
        let old = old.filter(|old| !is_lost(after, old));
        if old.is_some_and(|old| is_updated(before, old, new)) {
            let alloc = &new.alloc;
            let group = (
                alloc.job_key(),
                alloc.job_version,
                alloc.task_group.to_string(),
            );
            *replaced.entry(group).or_default() += 1;
        }
    }
    for ((job, version, group), replaced) in replaced {
        let Some(value) = after.job_version(&job, version) else {
            continue;
        };
        let update = value
            .value
            .task_group(&group)
            .and_then(|group| group.update);
        let limit = update.map_or(0, |update| update.max_parallel);
        if limit == 0 || value.value.job_type != JobType::Service {
            continue;
        }
        let unproven = before
            .allocs_by_job(&job)
            .filter(|view| *view.alloc.task_group == *group && view.alloc.job_version == version)
            .filter(|view| is_unproven(before, view) && !is_lost(after, view))
            .count();
        let unproven = u32::try_from(unproven).unwrap_or(u32::MAX);
        if replaced + unproven > limit {
            found.push(Violation {
                revision: after.index(),
                fact: Fact::UpdatesKeepTheirPace,
                found: format!(
                    "{job} {group}: version {version} replaces {replaced} while {unproven} are \
                     not yet healthy, of {limit}"
                ),
            });
        }
    }
}

/// Returns true if an older version was stopped for a newer one, and for no other reason.
fn is_updated(before: &Snapshot, old: &AllocView, new: &AllocView) -> bool {
    old.alloc.job_version < new.alloc.job_version
        && old.alloc.job_create_index == new.alloc.job_create_index
        && old.alloc.desired_status == DesiredStatus::Run
        && !old.alloc.transition.migrate
        && old.client_status() == ClientStatus::Running
        && is_on_a_node_that_is_up(before, old)
        && !is_off_node(before, old)
}

/// Returns true if the revision gave the allocation up as lost. Its node may be ready again by
/// then: the plan was made while it was down.
fn is_lost(after: &Snapshot, view: &AllocView) -> bool {
    let now = after.alloc(view.alloc.id);
    now.is_some_and(|now| now.client_status() == ClientStatus::Lost)
}

/// Returns true if a new allocation of a deployment may still become unhealthy.
fn is_unproven(before: &Snapshot, view: &AllocView) -> bool {
    view.alloc.deployment_id.is_some()
        && !view.is_terminal()
        && view.health().is_none_or(|health| !health.healthy)
        && is_on_a_node_that_is_up(before, view)
}

fn is_on_a_node_that_is_up(snapshot: &Snapshot, view: &AllocView) -> bool {
    let node = snapshot.node(view.alloc.node_id);
    node.is_some_and(|node| node.value.status == NodeStatus::Ready)
}
