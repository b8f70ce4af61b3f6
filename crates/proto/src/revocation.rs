//! Revocations of nodes.

use model::{Indexed, NodeId, NodeRevocation};

use crate::v1;

impl v1::NodeRevocation {
    pub fn new(node_id: NodeId, stored: &Indexed<NodeRevocation>) -> Self {
        let value = &stored.value;
        Self {
            node_id: node_id.to_string(),
            node_name: value.node_name.clone(),
            reason: value.reason.clone(),
            revoked_at_ns: value.revoked_at.0,
            create_index: stored.create_index,
            modify_index: stored.modify_index,
        }
    }
}
