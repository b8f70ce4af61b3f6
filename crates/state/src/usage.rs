//! Usage of one node: the sum over its live allocations, updated with each change.

use std::sync::Arc;

use model::{AllocatedResources, ComparableResources};

use crate::dedicated::DedicatedUse;
use crate::ports::PortUse;

/// The resources that a node's non-terminal allocations hold together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NodeUsage {
    pub total: ComparableResources,
    pub alloc_count: u32,
    pub ports: PortUse,
    /// Cores and device instances; `None` when none is held, as on most nodes.
    dedicated: Option<Arc<DedicatedUse>>,
}

impl NodeUsage {
    pub fn is_empty(&self) -> bool {
        self.alloc_count == 0
    }

    /// Counts one more allocation.
    pub fn add(&mut self, resources: &AllocatedResources) {
        self.total = self.total.plus(resources.total);
        self.alloc_count += 1;
        self.ports.add(&resources.ports);
        self.count_dedicated(resources, DedicatedUse::add);
    }

    /// Counts one allocation less.
    pub fn remove(&mut self, resources: &AllocatedResources) {
        self.total = self.total.minus(resources.total);
        self.alloc_count = self.alloc_count.saturating_sub(1);
        self.ports.remove(&resources.ports);
        self.count_dedicated(resources, DedicatedUse::remove);
    }

    fn count_dedicated(
        &mut self,
        resources: &AllocatedResources,
        count: impl FnOnce(&mut DedicatedUse, &AllocatedResources),
    ) {
        if resources.cores.is_empty() && resources.devices.is_empty() {
            return;
        }
        let dedicated = Arc::make_mut(self.dedicated.get_or_insert_default());
        count(dedicated, resources);
        if dedicated.is_empty() {
            self.dedicated = None;
        }
    }

    /// Applies a change of the held cores and devices.
    pub fn change_dedicated(&mut self, change: &DedicatedUse) {
        if change.is_empty() {
            return;
        }
        let dedicated = Arc::make_mut(self.dedicated.get_or_insert_default());
        dedicated.merge(change);
        if dedicated.is_empty() {
            self.dedicated = None;
        }
    }

    /// Returns the held cores and devices; `None` when none is held.
    pub fn dedicated(&self) -> Option<&DedicatedUse> {
        self.dedicated.as_deref()
    }
}
