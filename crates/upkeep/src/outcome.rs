//! The nodes that the cluster-controller writes.

use model::{Indexed, Node, NodeStatus, Timestamp};

use crate::config::Config;

/// Returns a node as it is with its new status, and the indexes it was read at.
pub fn moved(
    config: &Config,
    node: &Indexed<Node>,
    to: NodeStatus,
    now: Timestamp,
) -> Indexed<Node> {
    let status_description = match (node.value.status, to) {
        (NodeStatus::Down, NodeStatus::Ready) => "heard of again".to_owned(),
        (_, NodeStatus::Ready) => String::new(),
        (_, NodeStatus::Initializing) => "heard of again; has to report its allocations".to_owned(),
        (_, NodeStatus::Down | NodeStatus::Disconnected) => {
            format!("no heartbeat for {} s", config.silence_limit().as_secs())
        }
    };
    Indexed {
        create_index: node.create_index,
        modify_index: node.modify_index,
        value: Node {
            status: to,
            status_description,
            status_updated_at: now,
            ..node.value.clone()
        },
    }
}
