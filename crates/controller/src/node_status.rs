//! The status that a node should have, given its heartbeats.

use model::allocation::Allocation;
use model::{ClientStatus, Indexed, Node, NodeStatus, Timestamp};
use state::{AllocView, Snapshot};

use crate::config::Config;

/// Returns the new status of a node that sends heartbeats; `None`: it is unchanged.
///
/// Source: Nomad's public behaviour: a new node is ready with its first heartbeat, a node that was
/// down with its next one; a disconnected node has to report its allocations first.
pub(crate) fn status_after_heartbeat(
    config: &Config,
    now: Timestamp,
    snapshot: &Snapshot,
    node: &Indexed<Node>,
) -> Option<NodeStatus> {
    match node.value.status {
        NodeStatus::Ready => None,
        NodeStatus::Down => Some(NodeStatus::Ready),
        NodeStatus::Disconnected => Some(NodeStatus::Initializing),
        NodeStatus::Initializing => {
            may_be_ready(config, now, snapshot, node).then_some(NodeStatus::Ready)
        }
    }
}

/// Tells whether an initializing node has nothing to report, has reported, or has had time to report:
/// a node whose allocations have not changed may report nothing.
fn may_be_ready(
    config: &Config,
    now: Timestamp,
    snapshot: &Snapshot,
    node: &Indexed<Node>,
) -> bool {
    let mut owes_report = false;
    for view in snapshot.allocs_by_node(node.value.id) {
        if view.client_modify_index > node.modify_index {
            return true;
        }
        owes_report |= !view.is_terminal();
    }
    let since = now.since(node.value.status_updated_at);
    !owes_report || since >= config.silence_limit()
}

/// Returns the new status of a node without heartbeats; `None`: it is unchanged.
///
/// Source: Nomad's public behaviour: a node is disconnected instead of down as long as one of its
/// allocations is within its group's `disconnect { lost_after }`.
pub(crate) fn status_after_timeout(
    now: Timestamp,
    snapshot: &Snapshot,
    node: &Indexed<Node>,
) -> Option<NodeStatus> {
    let may_return = matches!(
        node.value.status,
        NodeStatus::Ready | NodeStatus::Disconnected
    ) && snapshot
        .allocs_by_node(node.value.id)
        .any(|view| may_be_out_of_reach(now, snapshot, view));
    let status = if may_return {
        NodeStatus::Disconnected
    } else {
        NodeStatus::Down
    };
    (status != node.value.status).then_some(status)
}

/// Tells whether an allocation is within its `lost_after`. The time runs from the moment that it
/// became unknown.
fn may_be_out_of_reach(now: Timestamp, snapshot: &Snapshot, view: &AllocView) -> bool {
    let alloc: &Allocation = &view.alloc;
    // An ended allocation does not need its node.
    if alloc.is_server_terminal() || view.is_client_terminal() {
        return false;
    }
    let job = snapshot.job_version(&alloc.job_key(), alloc.job_version);
    let lost_after = job
        .and_then(|job| {
            job.value
                .task_group(&alloc.task_group)?
                .disconnect?
                .lost_after
        })
        .unwrap_or_default();
    if lost_after.is_zero() {
        return false;
    }
    let unknown = view.client_status() == ClientStatus::Unknown;
    !unknown || now < alloc.unknown_since.plus(lost_after)
}
