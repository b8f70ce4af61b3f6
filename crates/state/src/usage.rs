//! What a node's allocations hold, kept up to date with each change instead of summed up each time.

use std::sync::Arc;

use model::{AllocatedResources, ComparableResources};

use crate::held::Held;
use crate::ports::PortUse;

/// The sum over a node's allocations that are not terminal.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NodeUsage {
    pub total: ComparableResources,
    pub alloc_count: u32,
    pub ports: PortUse,
    /// Cores and devices; `None`, as on most nodes: none of them is held.
    held: Option<Arc<Held>>,
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
        self.count_held(resources, Held::add);
    }

    /// Counts one less.
    pub fn remove(&mut self, resources: &AllocatedResources) {
        self.total = self.total.minus(resources.total);
        self.alloc_count = self.alloc_count.saturating_sub(1);
        self.ports.remove(&resources.ports);
        self.count_held(resources, Held::remove);
    }

    fn count_held(
        &mut self,
        resources: &AllocatedResources,
        count: impl FnOnce(&mut Held, &AllocatedResources),
    ) {
        if resources.cores.is_empty() && resources.devices.is_empty() {
            return;
        }
        let held = Arc::make_mut(self.held.get_or_insert_default());
        count(held, resources);
        if held.is_empty() {
            self.held = None;
        }
    }

    /// Counts a change of which cores and devices are held.
    pub fn change_held(&mut self, change: &Held) {
        if change.is_empty() {
            return;
        }
        let held = Arc::make_mut(self.held.get_or_insert_default());
        held.merge(change);
        if held.is_empty() {
            self.held = None;
        }
    }

    /// Returns which cores and devices are held; `None`: none.
    pub fn held(&self) -> Option<&Held> {
        self.held.as_deref()
    }
}
