//! Authentication of nodes: the caller has the certificate and knows the secret of the node that it
//! claims to be.

use std::sync::Arc;

use identity::{Caller, Role};
use model::{FieldErrors, Indexed, Node, NodeId};
use state::Snapshot;
use subtle::ConstantTimeEq as _;

use super::revocation::{self, Revoked};
use model::refusal::{Kind, Refusal};

/// The reason why a session is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SessionRefusal {
    #[error(transparent)]
    Invalid(#[from] FieldErrors),
    /// Final only when the snapshot is as new as the node's registration.
    #[error("node {0} is not registered: register it first")]
    Unknown(NodeId),
    #[error(
        "the secret is not the one that node {0} was registered with: a node keeps its first one. If the \
         node has lost its data_dir, remove its record by `kafila system gc` once it is down"
    )]
    WrongSecret(NodeId),
    #[error("{caller} may not act for node {node_id}: a node acts for the node in its certificate")]
    ForeignNode { caller: String, node_id: NodeId },
    #[error(transparent)]
    Revoked(#[from] Revoked),
}

impl Refusal for SessionRefusal {
    fn kind(&self) -> Kind {
        match self {
            Self::Invalid(_) => Kind::Invalid,
            Self::Unknown(_) => Kind::NotFound,
            Self::WrongSecret(_) | Self::ForeignNode { .. } => Kind::Denied,
            Self::Revoked(revoked) => revoked.kind(),
        }
    }

    fn field_errors(&self) -> Option<&FieldErrors> {
        match self {
            Self::Invalid(errors) => Some(errors),
            _ => None,
        }
    }
}

/// Parses a node's id.
///
/// # Errors
/// The text is not a UUID.
pub fn node_id(text: &str) -> Result<NodeId, FieldErrors> {
    text.parse().map_err(|error: model::ids::InvalidId| {
        let mut errors = FieldErrors::default();
        errors.push("node_id", error.to_string());
        errors
    })
}

/// Checks that the caller is the node that it speaks of: the name in its certificate is the node's id.
///
/// # Errors
/// [`SessionRefusal::ForeignNode`].
pub fn check_self(caller: &Caller, node_id: NodeId) -> Result<(), SessionRefusal> {
    let is_self = caller.identity().is_some_and(|identity| {
        let name = identity.name().parse::<NodeId>();
        identity.role() == Role::Node && name.is_ok_and(|name| name == node_id)
    });
    if is_self || caller.is_development() {
        return Ok(());
    }
    Err(SessionRefusal::ForeignNode {
        caller: caller.to_string(),
        node_id,
    })
}

/// Returns the node with this id and secret, whose caller it is.
///
/// # Errors
/// See [`SessionRefusal`].
pub fn open(
    snapshot: &Snapshot,
    caller: &Caller,
    node_id_text: &str,
    secret: &str,
) -> Result<Arc<Indexed<Node>>, SessionRefusal> {
    let id = node_id(node_id_text)?;
    check_self(caller, id)?;
    revocation::check(snapshot, id)?;
    let node = snapshot.node(id).ok_or(SessionRefusal::Unknown(id))?;
    if same_secret(&node.value.secret, secret) {
        Ok(Arc::clone(node))
    } else {
        Err(SessionRefusal::WrongSecret(id))
    }
}

/// Compares two secrets in constant time for their length, so that response times reveal no prefix
/// of a secret.
pub fn same_secret(stored: &str, sent: &str) -> bool {
    stored.as_bytes().ct_eq(sent.as_bytes()).into()
}
