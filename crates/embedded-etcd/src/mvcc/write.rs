//! One write: any number of puts and deletes that become one revision, or none of them.

use std::sync::Arc;

use bytes::Bytes;

use super::{
    range::{RangeOptions, RangeResult},
    store::Mvcc,
};
use crate::{
    error::ApiError,
    key_range::KeyRange,
    record::{Record, Revision},
};

/// A write in progress; it sees its own changes. Ends with [`WriteTxn::finish`] or
/// [`WriteTxn::roll_back`].
#[derive(Debug)]
#[must_use = "a write that is neither finished nor rolled back leaves its changes behind"]
pub struct WriteTxn<'a> {
    mvcc: &'a mut Mvcc,
    /// The revision before this write.
    begin: i64,
    changes: Vec<Arc<Record>>,
    lease_moves: Vec<LeaseMove>,
}

/// A key that changed its lease; 0 is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseMove {
    pub key: Bytes,
    pub from: i64,
    pub to: i64,
}

/// The result of a write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Committed {
    /// The revision of the write, or the one before it if it changed nothing.
    pub revision: i64,
    /// In the order they were made.
    pub changes: Vec<Arc<Record>>,
    pub lease_moves: Vec<LeaseMove>,
}

impl Mvcc {
    /// Begins a write; it becomes the revision after [`Mvcc::head`].
    pub fn write(&mut self) -> WriteTxn<'_> {
        WriteTxn {
            begin: self.head,
            mvcc: self,
            changes: Vec::new(),
            lease_moves: Vec::new(),
        }
    }
}

impl WriteTxn<'_> {
    /// The revision that the write's own reads are at: one on as soon as it has changed something.
    #[must_use]
    pub fn current(&self) -> i64 {
        self.begin + i64::from(!self.changes.is_empty())
    }

    /// The key as this write sees it.
    #[must_use]
    pub fn get(&self, key: &[u8]) -> Option<&Arc<Record>> {
        self.mvcc.get(key, self.current())
    }

    /// Reads as this write sees it.
    ///
    /// # Errors
    /// As [`Mvcc::range`].
    pub fn range(&self, range: &KeyRange, options: RangeOptions) -> Result<RangeResult, ApiError> {
        self.mvcc.range(range, options, self.current())
    }

    /// Gives `key` a new value, and returns the revision of the write.
    pub fn put(&mut self, key: Bytes, value: Bytes, lease: i64) -> i64 {
        let revision = self.next_revision();
        let previous = self.get(&key).cloned();
        // The key's bytes are shared by all its versions.
        let (key, create_revision, version, lease_before) = match previous {
            Some(previous) => (
                previous.key.clone(),
                previous.create_revision,
                previous.version + 1,
                previous.lease,
            ),
            None => (key, revision.main, 1, 0),
        };
        self.note_lease(&key, lease_before, lease);
        self.change(Record {
            key,
            value,
            create_revision,
            revision,
            version,
            lease,
        });
        revision.main
    }

    /// Deletes the live keys in `range` and returns their number.
    pub fn delete_range(&mut self, range: &KeyRange) -> i64 {
        let doomed: Vec<Arc<Record>> = self
            .mvcc
            .live_in(range, self.current())
            .map(Arc::clone)
            .collect();
        let mut deleted = 0;
        for record in doomed {
            self.note_lease(&record.key, record.lease, 0);
            let tombstone = Record::tombstone(record.key.clone(), self.next_revision());
            self.change(tombstone);
            deleted += 1;
        }
        deleted
    }

    /// Makes the changes part of the history.
    pub fn finish(self) -> Committed {
        let revision = self.current();
        self.mvcc.head = revision;
        Committed {
            revision,
            changes: self.changes,
            lease_moves: self.lease_moves,
        }
    }

    /// Undoes the changes.
    pub fn roll_back(self) {
        for record in self.changes.iter().rev() {
            self.mvcc.remove(record);
        }
    }

    fn next_revision(&self) -> Revision {
        Revision {
            main: self.begin + 1,
            sub: i64::try_from(self.changes.len()).expect("a txn is bounded by max_request_bytes"),
        }
    }

    fn note_lease(&mut self, key: &Bytes, from: i64, to: i64) {
        if from != 0 || to != 0 {
            self.lease_moves.push(LeaseMove {
                key: key.clone(),
                from,
                to,
            });
        }
    }

    fn change(&mut self, record: Record) {
        let record = Arc::new(record);
        self.mvcc.insert(Arc::clone(&record));
        self.changes.push(record);
    }
}
