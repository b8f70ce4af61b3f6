//! Revocations of nodes: an operator has taken back a node's right to act.

use serde::{Deserialize, Serialize};

use crate::time::Timestamp;

/// The revocation of a node: the value of `node-revocation/<node id>`.
///
/// It holds for the id, so for every certificate that names it. It stays until the node is reinstated.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeRevocation {
    pub revoked_at: Timestamp,
    /// The node's name when it was revoked; empty: it was not registered.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub node_name: String,
    /// The operator's reason; empty: none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}
