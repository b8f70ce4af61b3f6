//! The allocations of a node, as its agent knows them.

use lifecycle::Assignment;
use model::{AllocId, ComparableResources};

/// Allocations and what they reserve.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reserved {
    /// Allocations without a running task, kept for their files.
    pub ended: i64,
    /// The sum over all others.
    pub allocated: ComparableResources,
}

/// The allocations of a node, as its agent knows them at a scrape.
pub trait Source: Send + Sync {
    fn reserved(&self) -> Reserved;

    /// Returns the assignment of an allocation that is on the node and has not ended.
    fn live(&self, alloc_id: AllocId) -> Option<Assignment>;
}
