//! Revocations of nodes.

use proto::v1;
use serde::Serialize;

use crate::time;

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct NodeRevocation<'a> {
    #[serde(rename = "NodeID")]
    node_id: &'a str,
    node_name: &'a str,
    reason: &'a str,
    revocation_time: Option<String>,
    create_index: u64,
    modify_index: u64,
}

impl<'a> From<&'a v1::NodeRevocation> for NodeRevocation<'a> {
    fn from(revocation: &'a v1::NodeRevocation) -> Self {
        Self {
            node_id: &revocation.node_id,
            node_name: &revocation.node_name,
            reason: &revocation.reason,
            revocation_time: time::json(revocation.revoked_at_ns),
            create_index: revocation.create_index,
            modify_index: revocation.modify_index,
        }
    }
}
