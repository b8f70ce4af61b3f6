//! Forward scans of the history, for watches that start in the past or lag.

use std::sync::Arc;

use super::store::Mvcc;
use crate::{
    key_range::KeyRange,
    record::{Record, Revision},
};

/// Limits of a scan, which stops at the next whole revision.
#[derive(Clone, Copy, Debug)]
pub struct ScanLimits {
    /// Revisions that have a matching change.
    pub revisions: usize,
    /// Bytes of matching records.
    pub bytes: usize,
    /// Examined records.
    pub looked_at: usize,
}

/// Consecutive whole revisions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// In the order they happened.
    pub records: Vec<Arc<Record>>,
    /// The first revision that was not scanned; one past the visible one at the end.
    pub next: i64,
}

impl Mvcc {
    /// The visible changes in `range` from revision `from` on, up to `limits`.
    #[must_use]
    pub fn scan(&self, range: &KeyRange, from: i64, limits: ScanLimits) -> Chunk {
        if let KeyRange::One(key) = range {
            let versions = match self.index.get(key) {
                Some(history) => history.since(from),
                None => &[],
            };
            return self.collect(versions.iter(), range, limits);
        }
        let log = self.log.range(Revision::first_of(from)..);
        self.collect(log.map(|(_, record)| record), range, limits)
    }

    fn collect<'a>(
        &self,
        log: impl Iterator<Item = &'a Arc<Record>>,
        range: &KeyRange,
        limits: ScanLimits,
    ) -> Chunk {
        let mut records: Vec<Arc<Record>> = Vec::new();
        let (mut revisions, mut bytes, mut current) = (0, 0, 0);
        for (looked_at, record) in log.enumerate() {
            let main = record.revision.main;
            if main > self.visible {
                break;
            }
            if main != current {
                let full = revisions >= limits.revisions
                    || bytes >= limits.bytes
                    || looked_at >= limits.looked_at;
                if full {
                    return Chunk {
                        records,
                        next: main,
                    };
                }
                current = main;
            }
            if range.contains(&record.key) {
                if records.last().is_none_or(|last| last.revision.main != main) {
                    revisions += 1;
                }
                bytes += record.size();
                records.push(Arc::clone(record));
            }
        }
        Chunk {
            records,
            next: self.visible + 1,
        }
    }
}
