//! Look-ups of each noun in a snapshot, by the start of an id or by a name.

mod csi;
mod volume;

use std::collections::BTreeSet;

use model::{
    AllocId, DeploymentId, EvalId, IntroductionTokenId, NodeId, SigningKeyId, VolumeClaimId,
};
use state::Snapshot;

pub use self::csi::{csi_plugin, csi_volume};
pub use self::volume::volume;
use crate::prefix::{NotFound, find};

/// # Errors
/// See [`find`].
pub fn alloc(snapshot: &Snapshot, text: &str) -> Result<AllocId, NotFound> {
    let exists = |id| snapshot.alloc(id).is_some();
    let all = snapshot.allocs().map(|view| view.alloc.id);
    let all = all.map(|id| (id.0, id));
    find("alloc_id", "allocation", text, AllocId, exists, all)
}

/// # Errors
/// See [`find`].
pub fn deployment(snapshot: &Snapshot, text: &str) -> Result<DeploymentId, NotFound> {
    let exists = |id| snapshot.deployment(id).is_some();
    let all = snapshot.deployments().map(|stored| stored.value.id);
    let all = all.map(|id| (id.0, id));
    let (field, noun) = ("deployment_id", "deployment");
    find(field, noun, text, DeploymentId, exists, all)
}

/// # Errors
/// See [`find`].
pub fn eval(snapshot: &Snapshot, text: &str) -> Result<EvalId, NotFound> {
    let exists = |id| snapshot.eval(id).is_some();
    let all = snapshot.evals().map(|stored| stored.value.id);
    let all = all.map(|id| (id.0, id));
    find("eval_id", "evaluation", text, EvalId, exists, all)
}

/// # Errors
/// See [`find`].
pub fn introduction_token(
    snapshot: &Snapshot,
    text: &str,
) -> Result<IntroductionTokenId, NotFound> {
    let exists = |id| snapshot.introduction_token(id).is_some();
    let all = snapshot.introduction_tokens().map(|token| token.value.id);
    let all = all.map(|id| (id.0, id));
    let (field, noun) = ("token_id", "introduction token");
    find(field, noun, text, IntroductionTokenId, exists, all)
}

/// Returns a registered node.
///
/// # Errors
/// See [`find`].
pub fn node(snapshot: &Snapshot, text: &str) -> Result<NodeId, NotFound> {
    let exists = |id| snapshot.node(id).is_some();
    let all = snapshot.nodes().map(|stored| stored.value.id);
    let all = all.map(|id| (id.0, id));
    find("node_id", "node", text, NodeId, exists, all)
}

/// Returns the node with this id, or the registered or introduced one whose id begins so. A whole id
/// need not be known: the certificate of a node that is gone may be valid.
///
/// # Errors
/// See [`find`].
pub fn any_node(snapshot: &Snapshot, text: &str) -> Result<NodeId, NotFound> {
    let introduced = snapshot.node_introductions().map(|(id, _)| id);
    let registered = snapshot.nodes().map(|node| node.value.id);
    let known: BTreeSet<NodeId> = introduced.chain(registered).collect();
    let all = known.into_iter().map(|id| (id.0, id));
    find("node_id", "node", text, NodeId, |_| true, all)
}

/// Returns the node with this id, revoked or not, or the revoked one whose id begins so.
///
/// # Errors
/// See [`find`].
pub fn revoked_node(snapshot: &Snapshot, text: &str) -> Result<NodeId, NotFound> {
    let all = snapshot.node_revocations().map(|(id, _)| (id.0, id));
    find("node_id", "revoked node", text, NodeId, |_| true, all)
}

/// # Errors
/// See [`find`].
pub fn signing_key(snapshot: &Snapshot, text: &str) -> Result<SigningKeyId, NotFound> {
    let ring = snapshot.keyring().map(|ring| &ring.value.keys);
    let ids = || ring.into_iter().flatten().map(|key| key.id);
    let exists = |id| ids().any(|known| known == id);
    let all = ids().map(|id| (id.0, id));
    find("key_id", "signing key", text, SigningKeyId, exists, all)
}

/// # Errors
/// See [`find`].
pub fn volume_claim(snapshot: &Snapshot, text: &str) -> Result<VolumeClaimId, NotFound> {
    let exists = |id| snapshot.volume_claim(id).is_some();
    let all = snapshot.volume_claims().map(|claim| claim.value.id());
    let all = all.map(|id| (id.0, id));
    find("claim_id", "claim", text, VolumeClaimId, exists, all)
}
