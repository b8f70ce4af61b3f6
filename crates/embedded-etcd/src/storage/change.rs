//! Changes to store, and the stored contents.

use std::sync::Arc;

use crate::record::{Record, Revision};

/// One thing to store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// A new version of a key.
    Write(Arc<Record>),
    /// The store is compacted at `revision`; records are dropped one by one after it.
    Compact { revision: i64 },
    /// Drops a record that is unreachable after a compaction.
    Drop(Revision),
    /// A lease of `ttl` seconds.
    Grant { id: i64, ttl: i64 },
    /// The end of a lease.
    Revoke { id: i64 },
}

/// All stored data, each entry checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contents {
    /// In revision order.
    pub records: Vec<Record>,
    /// Id and seconds.
    pub leases: Vec<(i64, i64)>,
    /// [`crate::mvcc::NEVER_COMPACTED`] if it never was.
    pub compact_revision: i64,
    /// The number of times the store was opened, this time included.
    pub opened: u64,
}
