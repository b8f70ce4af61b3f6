//! Storage systems' volumes: checks of new allocations, and the compares of their volumes.
//!
//! Two concurrent plans may request a volume with a single writer, on different nodes. The plan
//! verified first gets it, because pending writes of all nodes count here.

use model::{Allocation, CsiVolumeKey, Node};
use placement::CsiAsks;
use state::{Key, Snapshot, Write};

use crate::pending::Pending;

/// # Errors
/// The reason why the node does not take one of `new`.
pub(super) fn check<'a>(
    snapshot: &Snapshot,
    pending: &Pending,
    node: &Node,
    new: impl Iterator<Item = &'a Allocation>,
) -> Result<(), String> {
    let mut planned: Vec<CsiVolumeKey> = Vec::new();
    for alloc in new {
        let Some(asks) = asks(snapshot, alloc) else {
            continue;
        };
        let keys: Vec<_> = asks.volumes(alloc.name_index).collect();
        asks.check(node, alloc.name_index, &planned, |key| {
            pending.csi_holders(snapshot, key)
        })?;
        planned.extend(keys);
    }
    Ok(())
}

/// Returns the compares of the volumes of a new allocation: none is deleted meanwhile.
pub(super) fn compares(snapshot: &Snapshot, alloc: &Allocation) -> Vec<Write> {
    let Some(asks) = asks(snapshot, alloc) else {
        return Vec::new();
    };
    let volumes = asks.volumes(alloc.name_index);
    let stored = volumes.filter_map(|key| Some((snapshot.csi_volume(&key)?.modify_index, key)));
    stored
        .map(|(modify_index, key)| Write::require(Key::CsiVolume(key), modify_index))
        .collect()
}

/// Returns the requests of an allocation's group; `None` when it has none.
fn asks(snapshot: &Snapshot, alloc: &Allocation) -> Option<CsiAsks> {
    let job = snapshot.job_version(&alloc.job_key(), alloc.job_version)?;
    let group = job.value.task_group(&alloc.task_group)?;
    let mut asks = CsiAsks::of_group(&job.value, group);
    if asks.is_empty() {
        return None;
    }
    asks.resolve(snapshot);
    Some(asks)
}
