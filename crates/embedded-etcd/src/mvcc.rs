//! The multi-version store: every version of every key since the last compaction.
//!
//! Pure and in memory; [`crate::storage`] persists the records that a write returns. Writes see
//! everything applied so far (`head`), reads see published revisions (`visible`). So a write can wait
//! for the disk without being visible early.

mod compaction;
mod hash;
mod history;
mod range;
mod scan;
mod store;
mod sweep;
mod write;

pub use self::{
    range::{RangeOptions, RangeResult},
    scan::{Chunk, ScanLimits},
    store::{FIRST_REVISION, Mvcc, NEVER_COMPACTED},
    write::{Committed, LeaseMove, WriteTxn},
};

#[cfg(test)]
mod tests;
