//! The volumes that allocations write to, and conflicts of a single writer with others.

use std::sync::Arc;

use model::job::VolumeRequest;
use model::{AccessMode, AllocId, Allocation, JobKey, NodeId, TaskGroup};
use state::Snapshot;

/// The volumes that an allocation writes to on its node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VolumeWrites {
    namespace: Arc<str>,
    /// The name, with exclusive use or not; `None`: unknown, as its job version is gone.
    writes: Option<Vec<(String, bool)>>,
}

impl VolumeWrites {
    /// Returns the writes of an allocation of `group` with this name index.
    pub fn of_group(namespace: &str, group: &TaskGroup, name_index: u32) -> Self {
        Self {
            namespace: namespace.into(),
            writes: Some(writes(group, name_index)),
        }
    }

    /// Tells whether it writes to no volume.
    pub fn is_empty(&self) -> bool {
        self.writes.as_ref().is_some_and(Vec::is_empty)
    }

    /// Reads the group that `alloc` runs, in its version.
    pub fn of(snapshot: &Snapshot, alloc: &Allocation) -> Self {
        let version = (alloc.job_key(), alloc.job_version);
        Self::of_version(snapshot, &version, &alloc.task_group, alloc.name_index)
    }

    /// The same of an allocation given by job, version, group and name index.
    pub fn of_version(
        snapshot: &Snapshot,
        (job, version): &(JobKey, u64),
        task_group: &str,
        name_index: u32,
    ) -> Self {
        let row = snapshot.job_version(job, *version);
        let group = row.and_then(|row| row.value.task_group(task_group));
        Self {
            namespace: job.namespace.clone(),
            writes: group.map(|group| writes(group, name_index)),
        }
    }

    /// Returns the writes of allocations that have not ended on the node, without `replaced`, the
    /// predecessor of the allocation to place.
    pub fn on_node(
        snapshot: &Snapshot,
        node_id: NodeId,
        replaced: Option<AllocId>,
    ) -> impl Iterator<Item = Self> {
        let there = snapshot.allocs_by_node(node_id);
        let hold =
            there.filter(move |view| !view.is_client_terminal() && Some(view.alloc.id) != replaced);
        hold.map(|view| Self::of(snapshot, &view.alloc))
            .filter(|one| !one.is_empty())
    }

    pub(super) fn conflict_with(&self, namespace: &str, asked: &[(&str, bool)]) -> bool {
        let Some(writes) = &self.writes else {
            return asked.iter().any(|(_, alone)| *alone);
        };
        *self.namespace == *namespace
            && asked.iter().any(|(name, alone)| {
                let mut writes = writes.iter();
                writes.any(|(other, is_alone)| other == name && (*alone || *is_alone))
            })
    }
}

fn writes(group: &TaskGroup, name_index: u32) -> Vec<(String, bool)> {
    let asks = group
        .volumes
        .values()
        .filter(|ask| !ask.read_only && !ask.is_csi());
    asks.map(|ask| (ask.source_for(name_index).into_owned(), is_alone(ask)))
        .collect()
}

pub(super) fn is_alone(ask: &VolumeRequest) -> bool {
    ask.access_mode == Some(AccessMode::SingleNodeSingleWriter)
}
