//! Volumes that were registered: whether new allocations may still have them, and what is written
//! beside an allocation that does.
//!
//! Two plans at once may ask for a volume that only one may write to; the first that is verified
//! gets it, because what is on its way counts here too.

use std::collections::BTreeSet;

use model::plan::Stop;
use model::{AllocId, Allocation, Node, Plan};
use placement::{VolumeAsks, VolumeWrites};
use state::{Entity, Key, Snapshot};

use crate::op::Op;
use crate::pending::Pending;

/// # Errors
/// Why the node does not take one of `new`: a volume is not there any more, or somebody else writes
/// to it.
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

/// Returns what a group asks for that asks for volumes; `None`: it does not.
fn asks(snapshot: &Snapshot, alloc: &Allocation) -> Option<VolumeAsks> {
    let job = snapshot.job_version(&alloc.job_key(), alloc.job_version)?;
    let group = job.value.task_group(&alloc.task_group)?;
    if group.volumes.is_empty() {
        return None;
    }
    let mut asks = VolumeAsks::of_group(&job.value, group);
    asks.look_in(snapshot);
    Some(asks)
}

/// Returns whose place `alloc` takes on the same node, if the plan stops that one: it has ended
/// before its successor starts.
fn replaced_by(plan: &Plan, alloc: &Allocation) -> Option<AllocId> {
    let previous = alloc.previous_alloc?;
    let stops = plan.stops.get(&alloc.node_id)?;
    let is_stopped = |stop: &Stop| stop.alloc_id == previous;
    stops.iter().any(is_stopped).then_some(previous)
}

/// Returns what a new allocation compares and writes beside itself: its volumes must be as they
/// were looked at, and a group claims a sticky one when it gets it first.
///
/// `claimed` are the keys of the claims that the plan writes already. `None`: a claim of the same
/// name is on its way.
pub(super) fn ops(
    snapshot: &Snapshot,
    pending: &Pending,
    alloc: &Allocation,
    claimed: &mut BTreeSet<Key>,
) -> Option<Vec<Op>> {
    let mut ops = Vec::new();
    let node = snapshot.node(alloc.node_id);
    let (Some(node), Some(asks)) = (node, asks(snapshot, alloc)) else {
        return Some(ops);
    };
    for volume in asks.volumes_on(&node.value, alloc.name_index) {
        ops.push(Op::Check {
            key: Key::Volume(volume.value.key()),
            modify_index: volume.modify_index,
        });
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
        ops.push(Op::Create {
            key,
            entity: Entity::VolumeClaim(Box::new(claim)),
        });
    }
    Some(ops)
}
