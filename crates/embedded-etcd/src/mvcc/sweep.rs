//! The progress of a compaction.

use crate::record::Revision;

/// A compaction whose records are still being dropped.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sweep {
    /// The revision compacted at.
    pub(super) upto: i64,
    /// The first record not yet looked at.
    pub(super) next: Revision,
}

impl Sweep {
    pub(super) fn upto(revision: i64) -> Self {
        Self {
            upto: revision,
            next: Revision::first_of(0),
        }
    }
}
