//! States of allocations that several commands wait for.

use proto::v1;

/// Returns whether no task of the allocation runs any more, as its node says, or as the servers decided
/// about a lost one.
pub(crate) fn has_ended(alloc: &v1::Allocation) -> bool {
    matches!(alloc.client_status.as_str(), "complete" | "failed" | "lost")
}
