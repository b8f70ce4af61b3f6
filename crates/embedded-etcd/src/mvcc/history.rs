//! The versions of one key, oldest first.

use std::sync::Arc;

use crate::record::{Record, Revision};

/// All versions of one key, tombstones included.
#[derive(Debug)]
pub(super) struct KeyHistory {
    /// By revision, ascending.
    versions: Vec<Arc<Record>>,
}

impl KeyHistory {
    pub(super) fn new(first: Arc<Record>) -> Self {
        Self {
            versions: vec![first],
        }
    }

    pub(super) fn push(&mut self, record: Arc<Record>) {
        debug_assert!(
            self.versions
                .last()
                .is_none_or(|last| last.revision < record.revision)
        );
        self.versions.push(record);
    }

    /// Removes the version written at `revision`.
    pub(super) fn remove(&mut self, revision: Revision) {
        let found = self
            .versions
            .binary_search_by_key(&revision, |record| record.revision);
        if let Ok(position) = found {
            self.versions.remove(position);
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.versions.is_empty()
    }

    /// The newest version written at or before `main`, possibly a tombstone.
    pub(super) fn last_at(&self, main: i64) -> Option<&Arc<Record>> {
        // Reads at the current revision are by far the most common.
        let newest = self.versions.last()?;
        if newest.revision.main <= main {
            return Some(newest);
        }
        let after = self
            .versions
            .partition_point(|record| record.revision.main <= main);
        self.versions.get(after.checked_sub(1)?)
    }

    /// The value at `main`, if the key existed.
    pub(super) fn live_at(&self, main: i64) -> Option<&Arc<Record>> {
        self.last_at(main).filter(|record| !record.is_tombstone())
    }

    /// All versions from the first of `main` on.
    pub(super) fn since(&self, main: i64) -> &[Arc<Record>] {
        let first = self
            .versions
            .partition_point(|record| record.revision.main < main);
        &self.versions[first..]
    }
}
