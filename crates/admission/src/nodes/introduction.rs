//! Introduction of nodes: tokens, their redemption for a certificate, its renewal, and the pool and name
//! that a token holds its nodes to.
//!
//! A node shows a token and the public key of its certificate. Its id follows from the key, so a node
//! that repeats a lost request, or comes back with another token, keeps its id. Another machine with the
//! same token gets another id, and a use less is left. Hashes and certificates are made by the caller.

use std::time::Duration;

use model::node::MAX_NAME_BYTES;
use model::refusal::{Kind, Refusal};
use model::{
    FieldErrors, Indexed, IntroductionToken, IntroductionTokenId, Node, NodeId, NodeIntroduction,
    NodePool, Timestamp,
};
use state::{Entity, Key, Snapshot, Write};

use super::revocation::{self, Revoked};
use super::session::same_secret;

/// The validity of a token without a requested one. Source: Nomad's default.
pub const DEFAULT_TTL: Duration = Duration::from_secs(5 * 60);
/// The longest validity: nodes of a group that grows need one, and a leaked token has to end.
pub const MAX_TTL: Duration = Duration::from_secs(30 * 24 * 3_600);
/// Source: ours. A token that leaks after its use is worth nothing.
pub const DEFAULT_USES: u32 = 1;
/// The largest number of uses that is counted. Ours: each use writes the token, one after the other.
pub const MAX_USES: u32 = 10_000;
/// Begins every token, so that scanners find leaked ones.
const TOKEN_PREFIX: &str = "kafila-node-";
/// A UUID as text.
const ID_LENGTH: usize = 36;

/// The request for a token.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TokenRequest {
    /// `None`: [`DEFAULT_TTL`].
    pub ttl: Option<Duration>,
    /// Number of nodes that it may introduce; 0: no limit; `None`: [`DEFAULT_USES`].
    pub uses: Option<u32>,
    pub node_id: Option<NodeId>,
    /// Empty: any.
    pub node_name: String,
    /// Empty: any.
    pub node_pool: String,
}

impl TokenRequest {
    /// # Errors
    /// All invalid fields.
    pub fn check(&self) -> Result<(), FieldErrors> {
        let mut errors = FieldErrors::default();
        let ttl = self.ttl.unwrap_or(DEFAULT_TTL);
        if ttl < Duration::from_secs(1) || ttl > MAX_TTL {
            errors.push("ttl", "is out of range: want 1s to 720h (30 days)");
        }
        let uses = self.uses.unwrap_or(DEFAULT_USES);
        if uses > MAX_USES {
            let message = format!("want 1 to {MAX_USES}, or 0 for no limit until the token ends");
            errors.push("uses", message);
        }
        if uses != 1 && self.node_id.is_some() {
            errors.push("uses", "a token with a node_id introduces one node: want 1");
        }
        if uses != 1 && !self.node_name.is_empty() {
            errors.push(
                "uses",
                "a token with a node_name introduces one node: want 1",
            );
        }
        if self.node_name.len() > MAX_NAME_BYTES {
            let message = format!("has {} bytes: want at most 128", self.node_name.len());
            errors.push("node_name", message);
        }
        if self.node_pool == NodePool::ALL {
            errors.push(
                "node_pool",
                "\"all\" means every pool: want the name of one, or none for any",
            );
        } else if let Some(problem) =
            NodePool::name_problem(&self.node_pool).filter(|_| !self.node_pool.is_empty())
        {
            errors.push("node_pool", problem);
        }
        errors.into_result(())
    }

    /// Returns the token of a checked request. `secret_sha256` is that of its secret.
    pub fn token(
        &self,
        id: IntroductionTokenId,
        secret_sha256: String,
        now: Timestamp,
    ) -> IntroductionToken {
        IntroductionToken {
            id,
            secret_sha256,
            created_at: now,
            expires_at: now.plus(self.ttl.unwrap_or(DEFAULT_TTL)),
            uses_max: self.uses.unwrap_or(DEFAULT_USES),
            uses: 0,
            node_id: self.node_id,
            node_name: self.node_name.clone(),
            node_pool: self.node_pool.clone(),
        }
    }
}

/// Returns the write of a new token.
pub fn create(token: &IntroductionToken) -> Write {
    Write::Create {
        key: Key::IntroductionToken(token.id),
        entity: Entity::IntroductionToken(Box::new(token.clone())),
    }
}

/// Returns the write that deletes a token. The nodes that it introduced stay.
pub fn delete(stored: &Indexed<IntroductionToken>) -> Write {
    Write::Delete {
        key: Key::IntroductionToken(stored.value.id),
        modify_index: stored.modify_index,
    }
}

/// Returns the text that a node gets: `kafila-node-<id>-<secret>`.
pub fn token_text(id: IntroductionTokenId, secret: &str) -> String {
    format!("{TOKEN_PREFIX}{id}-{secret}")
}

/// Reads the text of a token: its id and secret. `None`: it is none.
pub fn read_token(text: &str) -> Option<(IntroductionTokenId, &str)> {
    let rest = text.trim().strip_prefix(TOKEN_PREFIX)?;
    let (id, secret) = rest.split_at_checked(ID_LENGTH)?;
    let secret = secret.strip_prefix('-').filter(|secret| !secret.is_empty());
    Some((id.parse().ok()?, secret?))
}

/// A node's request for its first certificate.
#[derive(Clone, Debug)]
pub struct Introduction {
    pub token_id: IntroductionTokenId,
    /// Of the secret in the node's token.
    pub secret_sha256: String,
    /// Of the key that the node has proven to have.
    pub public_key_sha256: String,
    /// The id that follows from the key.
    pub key_node_id: NodeId,
    /// The id that the node has from an earlier run; `None`: it has none yet.
    pub kept_node_id: Option<NodeId>,
    /// The pool and the name that it registers with; empty: not known yet.
    pub node_pool: String,
    pub node_name: String,
    /// The end of the certificate that it gets.
    pub certified_until: Timestamp,
}

/// A granted introduction.
#[derive(Clone, Debug, PartialEq)]
pub struct Granted {
    pub node_id: NodeId,
    /// One transaction.
    pub writes: Vec<Write>,
}

/// The reason why a node gets no certificate.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IntroductionRefusal {
    /// Also of a wrong secret. Final only in a fresh snapshot.
    #[error(
        "the introduction token is unknown: it was deleted, has expired long ago, or is of another \
         cluster; create one with `kafila node introduction create`"
    )]
    UnknownToken,
    #[error(
        "the introduction token has expired: create one with `kafila node introduction create`, with a \
         larger -ttl if the node needs longer to start"
    )]
    Expired,
    #[error(
        "the introduction token is used up: each node needs one of its own, from `kafila node \
         introduction create`, or one with a larger -uses"
    )]
    UsedUp,
    #[error(
        "this node has the ID {kept} from an earlier run, and the token is not for it: create one with \
         `kafila node introduction create -node={kept}`, or remove the node's data_dir"
    )]
    OtherNode { kept: NodeId },
    #[error(
        "node {0} was not introduced by a token, or was forgotten since: create its certificate with \
         `kafila tls cert create -role=node -node={0}`, or introduce it again"
    )]
    NotIntroduced(NodeId),
    #[error(
        "the key is not the one that node {0} was introduced with: a node keeps its key, and a new \
         introduction replaces it"
    )]
    OtherKey(NodeId),
    #[error(transparent)]
    Revoked(#[from] Revoked),
    /// The node's configuration is not what the token is for.
    #[error(transparent)]
    Record(#[from] FieldErrors),
}

impl Refusal for IntroductionRefusal {
    fn kind(&self) -> Kind {
        match self {
            // No gateway answers otherwise.
            Self::UnknownToken
            | Self::Expired
            | Self::UsedUp
            | Self::OtherNode { .. }
            | Self::NotIntroduced(_)
            | Self::OtherKey(_) => Kind::Denied,
            Self::Revoked(revoked) => revoked.kind(),
            Self::Record(errors) => errors.kind(),
        }
    }

    fn field_errors(&self) -> Option<&FieldErrors> {
        match self {
            Self::Record(errors) => Some(errors),
            _ => None,
        }
    }
}

/// Decides on a node's first certificate.
///
/// The same key gets it again from the same token, which costs no use: the answer may have been lost.
///
/// # Errors
/// See [`IntroductionRefusal`].
pub fn introduce(
    snapshot: &Snapshot,
    request: &Introduction,
    now: Timestamp,
) -> Result<Granted, IntroductionRefusal> {
    let stored = snapshot.introduction_token(request.token_id);
    let stored = stored
        .filter(|stored| same_secret(&stored.value.secret_sha256, &request.secret_sha256))
        .ok_or(IntroductionRefusal::UnknownToken)?;
    let token = &stored.value;
    if token.is_expired(now) {
        return Err(IntroductionRefusal::Expired);
    }
    let node_id = token.node_id.unwrap_or(request.key_node_id);
    if let Some(kept) = request.kept_node_id.filter(|kept| *kept != node_id) {
        return Err(IntroductionRefusal::OtherNode { kept });
    }
    let known = snapshot.node_introduction(node_id);
    let has_used = known.is_some_and(|known| known.value.token_id == token.id);
    let is_same_key =
        known.is_some_and(|known| known.value.public_key_sha256 == request.public_key_sha256);
    // A token of this node replaces its lost key; any other must not take over a node.
    let may_take = known.is_none() || is_same_key || token.node_id.is_some();
    let is_repeated = has_used && is_same_key;
    if !is_repeated && (token.is_used_up() || !may_take) {
        return Err(IntroductionRefusal::UsedUp);
    }
    // Before the token is used: its next use would need another one.
    let [pool, name] = [&request.node_pool, &request.node_name]
        .map(|sent| Some(sent.as_str()).filter(|sent| !sent.is_empty()));
    check_restrictions([
        TokenRestriction::new("node_pool", &token.node_pool, pool),
        TokenRestriction::new("node_name", &token.node_name, name),
    ])?;
    let unrevoked = revocation::guard(snapshot, node_id)?;
    let introduction = NodeIntroduction {
        token_id: token.id,
        public_key_sha256: request.public_key_sha256.clone(),
        node_name: token.node_name.clone(),
        node_pool: token.node_pool.clone(),
        introduced_at: now,
        certified_until: request.certified_until,
    };
    let mut writes = vec![Write::put(
        Key::NodeIntroduction(node_id),
        known.map_or(0, |known| known.modify_index),
        Entity::NodeIntroduction(Box::new(introduction)),
    )];
    writes.push(used(stored, is_repeated));
    writes.push(unrevoked);
    Ok(Granted { node_id, writes })
}

/// Returns the write that counts a use, or requires that the token is not deleted meanwhile.
fn used(stored: &Indexed<IntroductionToken>, is_repeated: bool) -> Write {
    let (key, modify_index) = (Key::IntroductionToken(stored.value.id), stored.modify_index);
    if is_repeated || stored.value.uses_max == 0 {
        return Write::RequireUnchanged { key, modify_index };
    }
    let mut token = stored.value.clone();
    token.uses += 1;
    Write::Update {
        key,
        modify_index,
        entity: Entity::IntroductionToken(Box::new(token)),
    }
}

/// Decides on the next certificate of a node, which has shown its present one; returns the writes of
/// one transaction.
///
/// # Errors
/// The node was not introduced, shows another key, or is revoked.
pub fn renew(
    snapshot: &Snapshot,
    node_id: NodeId,
    public_key_sha256: &str,
    certified_until: Timestamp,
) -> Result<Vec<Write>, IntroductionRefusal> {
    let known = snapshot
        .node_introduction(node_id)
        .ok_or(IntroductionRefusal::NotIntroduced(node_id))?;
    if known.value.public_key_sha256 != public_key_sha256 {
        return Err(IntroductionRefusal::OtherKey(node_id));
    }
    let unrevoked = revocation::guard(snapshot, node_id)?;
    let introduction = NodeIntroduction {
        certified_until,
        ..known.value.clone()
    };
    let renewed = Write::Update {
        key: Key::NodeIntroduction(node_id),
        modify_index: known.modify_index,
        entity: Entity::NodeIntroduction(Box::new(introduction)),
    };
    Ok(vec![renewed, unrevoked])
}

/// Returns the token that the node has joined with, if it introduces further nodes.
pub fn usable_token(
    snapshot: &Snapshot,
    node_id: NodeId,
    now: Timestamp,
) -> Option<IntroductionTokenId> {
    let introduction = snapshot.node_introduction(node_id)?;
    let token = snapshot.introduction_token(introduction.value.token_id)?;
    let is_usable = !token.value.is_expired(now) && !token.value.is_used_up();
    is_usable.then_some(token.value.id)
}

/// Holds the record of a node to the pool and name of its introduction.
///
/// # Errors
/// The fields that differ.
pub fn check_record(snapshot: &Snapshot, node: &Node) -> Result<(), FieldErrors> {
    let Some(known) = snapshot.node_introduction(node.id) else {
        return Ok(());
    };
    let (pool, name) = (&known.value.node_pool, &known.value.node_name);
    check_restrictions([
        TokenRestriction::new("node.node_pool", pool, Some(&node.node_pool)),
        TokenRestriction::new("node.name", name, Some(&node.name)),
    ])
}

/// A field of which an introduction allows one value.
struct TokenRestriction<'a> {
    field: &'static str,
    /// Empty: any.
    wanted: &'a str,
    /// `None`: not known yet; the registration checks it.
    sent: Option<&'a str>,
}

impl<'a> TokenRestriction<'a> {
    fn new(field: &'static str, wanted: &'a str, sent: Option<&'a str>) -> Self {
        Self {
            field,
            wanted,
            sent,
        }
    }

    /// Returns the node's setting.
    fn setting(&self) -> &'static str {
        match self.field.ends_with("node_pool") {
            true => "node_pool",
            false => "name",
        }
    }
}

fn check_restrictions(restrictions: [TokenRestriction<'_>; 2]) -> Result<(), FieldErrors> {
    let mut errors = FieldErrors::default();
    for restriction in restrictions {
        let (wanted, setting) = (restriction.wanted, restriction.setting());
        let other = restriction.sent.filter(|sent| *sent != wanted);
        if let Some(sent) = other.filter(|_| !wanted.is_empty()) {
            errors.push(
                restriction.field,
                format!(
                    "is {sent:?}, and the node's introduction is for {wanted:?}: set {setting} = \
                     {wanted:?} in the node's configuration, or introduce it with another token"
                ),
            );
        }
    }
    errors.into_result(())
}

#[cfg(test)]
mod tests;
