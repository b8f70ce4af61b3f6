//! Host volumes: directories of a node that a group asks for by name.
//!
//! Static volumes are in the node's configuration, the others were registered by users. A
//! registered one belongs to a namespace, has allowed access modes, and may allow a single writer.
//!
//! **Use of a volume**, here and in the applier: an allocation uses it until it has ended on its
//! node, even if the server has stopped it: its process may still write. A replacement does not
//! wait for its predecessor, because the node starts it after the predecessor has ended.
//!
//! Source: Nomad's public behaviour, except for the last rule.
//!
//! In reading order: `asks` has the volumes of a group, `writes` the conflicts of writers, and
//! [`users`] the allocations that keep a volume from being deleted.

mod asks;
#[cfg(test)]
mod tests;
mod writes;

use model::Volume;
use state::{AllocView, Snapshot};

pub use asks::VolumeAsks;
pub use writes::VolumeWrites;

/// Returns the allocations that use a registered volume: those on its node that ask for its name
/// and have not ended.
pub fn users<'s>(
    snapshot: &'s Snapshot,
    volume: &'s Volume,
) -> impl Iterator<Item = &'s AllocView> {
    snapshot.allocs_by_node(volume.node_id).filter(|view| {
        let alloc = &view.alloc;
        if view.is_client_terminal() || *alloc.namespace != *volume.namespace {
            return false;
        }
        let job = snapshot.job_version(&alloc.job_key(), alloc.job_version);
        let group = job.and_then(|job| job.value.task_group(&alloc.task_group));
        let mut asks = group.iter().flat_map(|group| group.volumes.values());
        asks.any(|ask| !ask.is_csi() && *ask.source_for(alloc.name_index) == *volume.name)
    })
}
