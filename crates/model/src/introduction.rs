//! Introductions: tokens with which nodes get their first certificate, and the nodes that have used one.

use serde::{Deserialize, Serialize};

use crate::ids::{IntroductionTokenId, NodeId};
use crate::time::Timestamp;

/// A token that introduces nodes: the value of `introduction-token/<id>`.
///
/// Only the hash of its secret is stored, so reading the store introduces no node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IntroductionToken {
    /// In the key.
    #[serde(skip)]
    pub id: IntroductionTokenId,
    /// SHA-256 of the secret, hexadecimal.
    pub secret_sha256: String,
    pub created_at: Timestamp,
    /// The first time at which it is no longer accepted.
    pub expires_at: Timestamp,
    /// Number of nodes that it may introduce; 0: no limit.
    pub uses_max: u32,
    /// Number of nodes that it has introduced; not counted without a limit, so that nodes that join at
    /// the same time do not conflict.
    #[serde(default)]
    pub uses: u32,
    /// The id of the introduced node; `None`: one that its key determines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_id: Option<NodeId>,
    /// The name that the introduced node has to register with; empty: any.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub node_name: String,
    /// The pool that the introduced nodes have to register with; empty: any.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub node_pool: String,
}

impl IntroductionToken {
    pub fn is_expired(&self, now: Timestamp) -> bool {
        self.expires_at <= now
    }

    /// Tells whether it has introduced as many nodes as it may.
    pub fn is_used_up(&self) -> bool {
        self.uses_max != 0 && self.uses >= self.uses_max
    }
}

/// A node with a certificate from a token: the value of `node-introduction/<node id>`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeIntroduction {
    /// The token that it has used last.
    pub token_id: IntroductionTokenId,
    /// SHA-256 of its public key, hexadecimal.
    pub public_key_sha256: String,
    /// As in the token.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub node_name: String,
    /// As in the token.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub node_pool: String,
    pub introduced_at: Timestamp,
    /// The end of its newest certificate.
    pub certified_until: Timestamp,
}
