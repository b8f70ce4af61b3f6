//! Usage of each node by the priority of the jobs: an upper bound of the resources that a job can
//! gain on the node by preemption, without reading each allocation.
//!
//! **Invariant**: every non-terminal allocation counts on its node under the priority of its job
//! version; an allocation of an unknown version counts nowhere.

use std::sync::Arc;

use imbl::OrdSet;
use model::{AllocatedResources, ComparableResources, JobKey, NodeId};

use crate::map::Map;

/// The resources that allocations of one priority hold together on one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    pub priority: u8,
    pub alloc_count: u32,
    pub total: ComparableResources,
}

/// Every node's shares.
#[derive(Clone, Debug, Default)]
pub(crate) struct Priorities {
    /// Lowest priority first. Behind an `Arc`, because the map copies neighbours with each change.
    by_node: Map<NodeId, Arc<Vec<Share>>>,
    /// Unknown job versions of live allocations: a list may bring the allocation first.
    unknown: OrdSet<(JobKey, u64)>,
}

impl Priorities {
    pub(crate) fn shares(&self, node: NodeId) -> &[Share] {
        self.by_node.get(&node).map_or(&[], |shares| shares)
    }

    pub(crate) fn add(&mut self, node: NodeId, priority: u8, resources: &AllocatedResources) {
        let shares = Arc::make_mut(self.by_node.entry(node).or_default());
        let position = match shares.binary_search_by_key(&priority, |share| share.priority) {
            Ok(position) => position,
            Err(position) => {
                let share = Share {
                    priority,
                    alloc_count: 0,
                    total: ComparableResources::default(),
                };
                shares.insert(position, share);
                position
            }
        };
        let share = &mut shares[position];
        share.alloc_count += 1;
        share.total = share.total.plus(resources.total);
    }

    pub(crate) fn remove(&mut self, node: NodeId, priority: u8, resources: &AllocatedResources) {
        let Some(shares) = self.by_node.get_mut(&node) else {
            return;
        };
        let shares = Arc::make_mut(shares);
        let Ok(position) = shares.binary_search_by_key(&priority, |share| share.priority) else {
            return;
        };
        let share = &mut shares[position];
        share.alloc_count -= 1;
        share.total = share.total.minus(resources.total);
        if share.alloc_count == 0 {
            shares.remove(position);
        }
        if shares.is_empty() {
            self.by_node.remove(&node);
        }
    }

    /// Notes that a live allocation has an unknown version.
    pub(crate) fn note_unknown(&mut self, version: (JobKey, u64)) {
        self.unknown.insert(version);
    }

    /// Returns whether live allocations have this version, which was unknown until now.
    pub(crate) fn take_unknown(&mut self, version: &(JobKey, u64)) -> bool {
        self.unknown.remove(version).is_some()
    }
}
