//! What a node's allocations hold, kept up to date with each change instead of summed up each time.

use model::{AllocatedResources, ComparableResources};

use crate::ports::PortUse;

/// The sum over a node's allocations that are not terminal.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NodeUsage {
    pub total: ComparableResources,
    pub alloc_count: u32,
    pub ports: PortUse,
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
    }

    /// Counts one less.
    pub fn remove(&mut self, resources: &AllocatedResources) {
        self.total = self.total.minus(resources.total);
        self.alloc_count = self.alloc_count.saturating_sub(1);
        self.ports.remove(&resources.ports);
    }
}
