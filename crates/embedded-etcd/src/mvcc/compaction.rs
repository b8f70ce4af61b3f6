//! Compaction: drops unreachable versions, in bounded steps.

use std::sync::Arc;

use super::{store::Mvcc, sweep::Sweep};
use crate::{
    error::ApiError,
    record::{Record, Revision},
};

impl Mvcc {
    /// Refuses reads before `revision` from now on; [`Mvcc::sweep`] then drops the records.
    ///
    /// # Errors
    /// [`ApiError::Compacted`] at or before the last compaction, [`ApiError::FutureRevision`] after
    /// the revision that readers can see.
    pub fn compact(&mut self, revision: i64) -> Result<(), ApiError> {
        if revision <= self.compact_revision {
            return Err(ApiError::Compacted);
        }
        // A write that is not yet published does not count: the compaction was requested while it
        // was in flight, so it may as well have come first.
        if revision > self.visible {
            return Err(ApiError::FutureRevision);
        }
        self.compact_revision = revision;
        self.sweep = Some(Sweep::upto(revision));
        Ok(())
    }

    /// Returns true if a compaction has records left to drop.
    #[must_use]
    pub fn is_sweeping(&self) -> bool {
        self.sweep.is_some()
    }

    /// Examines up to `budget` records (at least one) of a running compaction and returns those it
    /// dropped.
    pub fn sweep(&mut self, budget: usize) -> Vec<Revision> {
        let budget = budget.max(1);
        let Some(Sweep { upto, next }) = self.sweep else {
            return Vec::new();
        };
        let looked_at: Vec<Arc<Record>> = self
            .log
            .range(next..=Revision::last_of(upto))
            .take(budget)
            .map(|(_, record)| Arc::clone(record))
            .collect();
        self.sweep = match looked_at.last() {
            Some(last) if looked_at.len() == budget => Some(Sweep {
                upto,
                next: Revision {
                    main: last.revision.main,
                    sub: last.revision.sub + 1,
                },
            }),
            _ => None,
        };
        let mut dropped = Vec::new();
        for record in looked_at {
            if !self.survives(&record, upto) {
                self.remove(&record);
                dropped.push(record.revision);
            }
        }
        dropped
    }

    /// Returns true if a compaction at `upto` keeps `record`, which is not newer than that: the
    /// newest version of a key stays, unless it is a tombstone from before `upto`.
    pub(crate) fn survives(&self, record: &Record, upto: i64) -> bool {
        let newest = self
            .index
            .get(&record.key)
            .and_then(|history| history.last_at(upto));
        newest.is_some_and(|newest| newest.revision == record.revision)
            && (!record.is_tombstone() || record.revision.main == upto)
    }
}
