//! Evaluations after a change of a node: the changes that require them, and the jobs that still need one.

use model::{Indexed, Node, NodeStatus, Timestamp};
use placement::node_evals::{counts, job_of};
use state::Snapshot;

/// Tells whether a change of status affects the jobs on the node.
///
/// Source: Nomad's public behaviour: a node that goes down, becomes ready, or is disconnected or
/// no longer so.
pub fn affects_jobs(from: NodeStatus, to: NodeStatus) -> bool {
    use NodeStatus::{Disconnected, Down, Ready};
    from != to && (matches!(to, Down | Ready | Disconnected) || from == Disconnected)
}

/// Tells whether a job of a node may lack an evaluation of the node's record: it says so, or the node
/// is down and a job with an allocation on it has no evaluation since.
pub(crate) fn may_lack_one(snapshot: &Snapshot, node: &Indexed<Node>, now: Timestamp) -> bool {
    node.value.lacks_evals
        || (node.value.status == NodeStatus::Down && lacks_evaluation(snapshot, node, now))
}

fn lacks_evaluation(snapshot: &Snapshot, node: &Indexed<Node>, now: Timestamp) -> bool {
    snapshot.allocs_by_node(node.value.id).any(|view| {
        let (job_type, _) = job_of(snapshot, view);
        !view.is_client_terminal()
            && counts(job_type, view)
            && snapshot.covered_index(&view.alloc.job_key(), now) < node.modify_index
    })
}
