//! Registered volumes: checks of new allocations' volume requests, and the writes beside them.
//!
//! Two concurrent plans may request a volume with a single writer. The plan verified first gets it,
//! because pending writes count here, too.

use std::collections::BTreeSet;

use model::plan::Stop;
use model::{AllocId, Allocation, Node, Plan};
use placement::{VolumeAsks, VolumeWrites};
use state::{Entity, Key, Snapshot, Write};

use crate::pending::Pending;

/// # Errors
/// The reason why the node does not take one of `new`: a volume is gone, or has another writer.
pub(super) fn check<'a>(
    snapshot: &Snapshot,
    pending: &Pending,
    plan: &Plan,
    node: &Node,
    new: impl Iterator<Item = &'a Allocation>,
) -> Result<(), String> {
    let mut planned = Vec::new();
    for alloc in new {
        let Some(asks) = asks(snapshot, alloc) else {
            continue;
        };
        if !asks.pass(node, alloc.name_index) {
            return Err(VolumeAsks::REASON.to_owned());
        }
        let others = || {
            let replaced = replaced_by(plan, alloc);
            let there = VolumeWrites::on_node(snapshot, node.id, replaced);
            let coming = pending.writes(snapshot, node.id);
            there.chain(coming).chain(planned.iter().cloned())
        };
        if asks.is_taken(node, alloc.name_index, others) {
            return Err(VolumeAsks::CONFLICT.to_owned());
        }
        planned.push(VolumeWrites::of(snapshot, alloc));
    }
    Ok(())
}

/// Returns the volume requests of an allocation's group; `None` when it has none.
fn asks(snapshot: &Snapshot, alloc: &Allocation) -> Option<VolumeAsks> {
    let job = snapshot.job_version(&alloc.job_key(), alloc.job_version)?;
    let group = job.value.task_group(&alloc.task_group)?;
    if group.volumes.is_empty() {
        return None;
    }
    let mut asks = VolumeAsks::of_group(&job.value, group);
    asks.resolve(snapshot);
    Some(asks)
}

/// Returns the allocation that `alloc` replaces on the same node, if the plan stops it: it ends before
/// its successor starts.
fn replaced_by(plan: &Plan, alloc: &Allocation) -> Option<AllocId> {
    let previous = alloc.previous_alloc?;
    let stops = plan.stops.get(&alloc.node_id)?;
    let is_stopped = |stop: &Stop| stop.alloc_id == previous;
    stops.iter().any(is_stopped).then_some(previous)
}

/// Returns the writes beside a new allocation: compares of its volumes, and the claim of a sticky
/// volume that its group gets for the first time.
///
/// `claimed` are the keys of claims that the plan already writes. `None`: a claim with the same key
/// is pending.
pub(super) fn ops(
    snapshot: &Snapshot,
    pending: &Pending,
    alloc: &Allocation,
    claimed: &mut BTreeSet<Key>,
) -> Option<Vec<Write>> {
    let mut ops = Vec::new();
    let node = snapshot.node(alloc.node_id);
    let (Some(node), Some(asks)) = (node, asks(snapshot, alloc)) else {
        return Some(ops);
    };
    for volume in asks.volumes_on(&node.value, alloc.name_index) {
        ops.push(Write::require(
            Key::Volume(volume.value.key()),
            volume.modify_index,
        ));
    }
    for claim in asks.claims(&node.value, alloc) {
        let id = claim.id();
        let key = Key::VolumeClaim(id);
        if snapshot.volume_claim(id).is_some() || !claimed.insert(key.clone()) {
            continue;
        }
        if pending.is_unshown(&key, 0) {
            return None;
        }
        ops.push(Write::Create {
            key,
            entity: Entity::VolumeClaim(Box::new(claim)),
        });
    }
    Some(ops)
}
