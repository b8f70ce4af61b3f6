//! Held cores and devices of a node.

use state::dedicated::DeviceRef;
use state::{DedicatedUse, NodeUsage};

/// Tells which cores and devices of a node are held.
pub trait Holds {
    fn holds_core(&self, id: u16) -> bool;
    fn holds_device(&self, device: DeviceRef<'_>) -> bool;
}

impl Holds for NodeUsage {
    fn holds_core(&self, id: u16) -> bool {
        self.dedicated().is_some_and(|held| held.holds_core(id))
    }

    fn holds_device(&self, device: DeviceRef<'_>) -> bool {
        self.dedicated()
            .is_some_and(|held| held.holds_device(device))
    }
}

impl Holds for DedicatedUse {
    fn holds_core(&self, id: u16) -> bool {
        self.of_core(id) > 0
    }

    fn holds_device(&self, device: DeviceRef<'_>) -> bool {
        self.of_device(device) > 0
    }
}

/// An empty node.
pub(crate) struct EmptyNode;

impl Holds for EmptyNode {
    fn holds_core(&self, _: u16) -> bool {
        false
    }

    fn holds_device(&self, _: DeviceRef<'_>) -> bool {
        false
    }
}
