//! What each node's allocations hold, by the priority of their jobs: how much somebody more
//! important could gain on a node at most, without a look at each of its allocations.
//!
//! **Invariant**: every allocation that is not terminal counts on its node under the priority of the
//! job version that it names; one whose version is not known counts nowhere.

use std::sync::Arc;

use imbl::OrdSet;
use model::{AllocatedResources, ComparableResources, JobKey, NodeId};

use crate::tables::Map;

/// What the allocations of one priority hold together on one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    pub priority: u8,
    pub alloc_count: u32,
    pub total: ComparableResources,
}

/// Every node's shares.
#[derive(Clone, Debug, Default)]
pub(crate) struct Priorities {
    /// Lowest priority first; behind an `Arc`, because the map copies its neighbours with each change.
    by_node: Map<NodeId, Arc<Vec<Share>>>,
    /// Job versions that live allocations name and that are not known: a list has them in any order.
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

    /// Remembers that a live allocation names a version that is not known.
    pub(crate) fn miss(&mut self, version: (JobKey, u64)) {
        self.unknown.insert(version);
    }

    /// Tells whether somebody missed this version, which is known now.
    pub(crate) fn is_missed(&mut self, version: &(JobKey, u64)) -> bool {
        self.unknown.remove(version).is_some()
    }
}
