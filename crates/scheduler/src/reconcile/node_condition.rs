//! Condition of an allocation's node, by the node's status.

use model::NodeStatus;
use state::{AllocView, Snapshot};

/// The condition of an allocation's node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NodeCondition {
    Ready,
    /// It has returned, but accepts no changes yet.
    Initializing,
    Disconnected,
    Down,
    Gone,
}

impl NodeCondition {
    /// Tells whether the node is connected.
    pub(crate) fn is_connected(self) -> bool {
        matches!(self, Self::Ready | Self::Initializing)
    }
}

pub(crate) fn node_condition(snapshot: &Snapshot, view: &AllocView) -> NodeCondition {
    match snapshot
        .node(view.alloc.node_id)
        .map(|node| node.value.status)
    {
        None => NodeCondition::Gone,
        Some(NodeStatus::Down) => NodeCondition::Down,
        Some(NodeStatus::Disconnected) => NodeCondition::Disconnected,
        Some(NodeStatus::Ready) => NodeCondition::Ready,
        Some(NodeStatus::Initializing) => NodeCondition::Initializing,
    }
}
