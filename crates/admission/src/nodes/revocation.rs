//! Revocation of nodes: a revoked node gets no certificate, does not register, and has no session.
//!
//! It holds for the node's id, whatever certificate the caller has, and until an operator reinstates
//! the node. Certificates, registrations and renewals compare the revocation in their transactions; a
//! session is checked at each call, and its stream at each update.

use model::refusal::{Kind, Refusal};
use model::{FieldErrors, NodeId, NodeRevocation, Timestamp};
use state::{Entity, Key, Snapshot, Write};

use crate::cluster::change::OneWrite;

/// The length limit of a reason, in bytes: a line for the list.
pub const MAX_REASON_BYTES: usize = 256;

/// The node is revoked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "node {0} is revoked: an operator has to reinstate it (`kafila node introduction reinstate {0}`); \
     to join as a new node, the machine needs an empty data_dir and a token of its own"
)]
pub struct Revoked(pub NodeId);

impl Refusal for Revoked {
    fn kind(&self) -> Kind {
        Kind::Denied
    }
}

/// The node to be reinstated is not revoked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("node {0} is not revoked: `kafila node introduction revoked` lists the nodes that are")]
pub struct NotRevoked(pub NodeId);

impl Refusal for NotRevoked {
    fn kind(&self) -> Kind {
        Kind::NotFound
    }
}

/// Checks that the node is not revoked.
///
/// # Errors
/// [`Revoked`].
pub fn check(snapshot: &Snapshot, node_id: NodeId) -> Result<(), Revoked> {
    match snapshot.node_revocation(node_id) {
        Some(_) => Err(Revoked(node_id)),
        None => Ok(()),
    }
}

/// Returns the compare for a transaction that needs a node that is not revoked.
///
/// # Errors
/// [`Revoked`].
pub fn guard(snapshot: &Snapshot, node_id: NodeId) -> Result<Write, Revoked> {
    check(snapshot, node_id)?;
    let key = Key::NodeRevocation(node_id);
    Ok(Write::RequireAbsent { key })
}

/// Checks an operator's reason.
///
/// # Errors
/// It is too long.
pub fn check_reason(reason: &str) -> Result<(), FieldErrors> {
    let mut errors = FieldErrors::default();
    if reason.len() > MAX_REASON_BYTES {
        let message = format!(
            "has {} bytes: want at most {MAX_REASON_BYTES}",
            reason.len()
        );
        errors.push("reason", message);
    }
    errors.into_result(())
}

/// The decision on the revocation of a node.
#[derive(Clone, Debug, PartialEq)]
pub struct Revocation {
    /// Empty: the node is not registered.
    pub node_name: String,
    pub change: OneWrite,
}

/// Decides on revoking a node; the first reason and time of a revoked one stay.
pub fn revoke(snapshot: &Snapshot, node_id: NodeId, reason: &str, now: Timestamp) -> Revocation {
    let node = snapshot.node(node_id);
    Revocation {
        node_name: node.map_or_else(String::new, |node| node.value.name.clone()),
        change: match snapshot.node_revocation(node_id) {
            Some(known) => OneWrite::Unchanged {
                modify_index: known.modify_index,
            },
            None => OneWrite::Write(Box::new(write(snapshot, node_id, reason, now))),
        },
    }
}

fn write(snapshot: &Snapshot, node_id: NodeId, reason: &str, now: Timestamp) -> Write {
    let node = snapshot.node(node_id);
    let revocation = NodeRevocation {
        revoked_at: now,
        node_name: node.map_or_else(String::new, |node| node.value.name.clone()),
        reason: reason.to_owned(),
    };
    Write::Create {
        key: Key::NodeRevocation(node_id),
        entity: Entity::NodeRevocation(Box::new(revocation)),
    }
}

/// Returns the write that ends a revocation.
///
/// # Errors
/// [`NotRevoked`].
pub fn reinstate(snapshot: &Snapshot, node_id: NodeId) -> Result<Write, NotRevoked> {
    let stored = snapshot
        .node_revocation(node_id)
        .ok_or(NotRevoked(node_id))?;
    Ok(Write::Delete {
        key: Key::NodeRevocation(node_id),
        modify_index: stored.modify_index,
    })
}

#[cfg(test)]
mod tests;
