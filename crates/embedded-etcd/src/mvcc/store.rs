//! The records by key and by revision, and the revisions that readers and compactions see.

use std::{collections::BTreeMap, sync::Arc};

use bytes::Bytes;

use super::{history::KeyHistory, sweep::Sweep};
use crate::record::{Record, Revision};

/// The revision of an empty store; the first write is 2, as in etcd.
pub const FIRST_REVISION: i64 = 1;

/// The compact revision of a store that was never compacted, as in etcd.
pub const NEVER_COMPACTED: i64 = -1;

/// All versions of all keys.
#[derive(Debug)]
pub struct Mvcc {
    /// Key → its versions. No key has an empty history.
    pub(super) index: BTreeMap<Bytes, KeyHistory>,
    /// The same records in the order they were written.
    pub(super) log: BTreeMap<Revision, Arc<Record>>,
    /// The revision of the last applied write.
    pub(super) head: i64,
    /// The revision of the last write that readers may see.
    pub(super) visible: i64,
    /// Reads before this revision are refused.
    pub(super) compact_revision: i64,
    /// The part of a compaction that is still to be done.
    pub(super) sweep: Option<Sweep>,
    /// Bytes of all records held.
    pub(super) size: usize,
}

impl Default for Mvcc {
    fn default() -> Self {
        Self {
            index: BTreeMap::new(),
            log: BTreeMap::new(),
            head: FIRST_REVISION,
            visible: FIRST_REVISION,
            compact_revision: NEVER_COMPACTED,
            sweep: None,
            size: 0,
        }
    }
}

impl Mvcc {
    /// Takes a record read back from storage; they come in revision order.
    pub fn load(&mut self, record: Arc<Record>) {
        self.head = self.head.max(record.revision.main);
        self.visible = self.head;
        self.insert(record);
    }

    /// Ends loading: the store was last compacted at `compact_revision`, maybe unfinished.
    ///
    /// The revision never goes back, not even when compaction removed the newest records.
    pub fn finish_load(&mut self, compact_revision: i64) {
        self.compact_revision = compact_revision;
        self.head = self.head.max(compact_revision);
        self.visible = self.head;
        if compact_revision > 0 {
            self.sweep = Some(Sweep::upto(compact_revision));
        }
    }

    /// The revision of the last applied write.
    #[must_use]
    pub fn head(&self) -> i64 {
        self.head
    }

    /// The revision that readers see.
    #[must_use]
    pub fn visible(&self) -> i64 {
        self.visible
    }

    /// The revision before which reads are refused; [`NEVER_COMPACTED`] at first.
    #[must_use]
    pub fn compact_revision(&self) -> i64 {
        self.compact_revision
    }

    /// Bytes of all records held, of all versions.
    #[must_use]
    pub fn size(&self) -> usize {
        self.size
    }

    /// Makes everything applied so far visible to readers.
    pub fn publish(&mut self) {
        self.visible = self.head;
    }

    /// The version of `key` at `revision`; `None` if it did not exist then.
    #[must_use]
    pub fn get(&self, key: &[u8], revision: i64) -> Option<&Arc<Record>> {
        self.index.get(key)?.live_at(revision)
    }

    /// All live records in key order, for rebuilding derived state.
    pub fn live(&self) -> impl Iterator<Item = &Arc<Record>> {
        self.index
            .values()
            .filter_map(|history| history.live_at(self.head))
    }

    pub(super) fn insert(&mut self, record: Arc<Record>) {
        self.size += record.size();
        self.log.insert(record.revision, Arc::clone(&record));
        if let Some(history) = self.index.get_mut(&record.key) {
            history.push(record);
        } else {
            let key = record.key.clone();
            self.index.insert(key, KeyHistory::new(record));
        }
    }

    pub(super) fn remove(&mut self, record: &Record) {
        self.size -= record.size();
        self.log.remove(&record.revision);
        if let Some(history) = self.index.get_mut(&record.key) {
            history.remove(record.revision);
            if history.is_empty() {
                self.index.remove(&record.key);
            }
        }
    }
}
