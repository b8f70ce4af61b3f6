//! Is the caller the node that it says it is.

use std::sync::Arc;

use model::{FieldErrors, Indexed, Node, NodeId};
use state::Snapshot;

/// Why a session is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error(transparent)]
    Invalid(#[from] FieldErrors),
    /// Final only when the snapshot is as new as the node's registration.
    #[error("node {0} is not registered: register it first")]
    Unknown(NodeId),
    #[error(
        "the secret is not the one that node {0} was registered with: a node keeps its first one"
    )]
    WrongSecret(NodeId),
}

/// Reads a node's id.
///
/// # Errors
/// It is not one.
pub fn node_id(text: &str) -> Result<NodeId, FieldErrors> {
    text.parse().map_err(|error: model::ids::InvalidId| {
        let mut errors = FieldErrors::default();
        errors.push("node_id", error.to_string());
        errors
    })
}

/// Returns the node whose id and secret these are.
///
/// # Errors
/// See [`Refusal`].
pub fn open(
    snapshot: &Snapshot,
    node_id_text: &str,
    secret: &str,
) -> Result<Arc<Indexed<Node>>, Refusal> {
    let id = node_id(node_id_text)?;
    let node = snapshot.node(id).ok_or(Refusal::Unknown(id))?;
    if same_secret(&node.value.secret, secret) {
        Ok(Arc::clone(node))
    } else {
        Err(Refusal::WrongSecret(id))
    }
}

/// Compares two secrets in a time that depends on their lengths only, so that nobody finds one out
/// byte by byte.
pub fn same_secret(stored: &str, sent: &str) -> bool {
    if stored.len() != sent.len() {
        return false;
    }
    let difference = stored
        .bytes()
        .zip(sent.bytes())
        .fold(0, |found, (a, b)| found | (a ^ b));
    difference == 0
}
