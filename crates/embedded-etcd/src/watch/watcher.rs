//! One watch: its request and its progress.

use std::sync::Arc;

use crate::{error::ApiError, key_range::KeyRange, record::Record};

/// A client's request to create a watch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    pub range: KeyRange,
    /// The first revision of interest; 0 is from now on.
    pub start_revision: i64,
    /// The id it wants; 0 lets the stream choose.
    pub watch_id: i64,
    /// Report progress while nothing changes.
    pub progress_notify: bool,
    /// Filter out puts.
    pub no_put: bool,
    /// Filter out deletes.
    pub no_delete: bool,
    pub prev_kv: bool,
    /// Allow fragments of large messages.
    pub fragment: bool,
}

/// Refusal of a watch, sent on the stream in etcd's wording.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WatchError {
    #[error("mvcc: watcher range is empty")]
    EmptyRange,
    #[error("mvcc: duplicate watch ID provided on the WatchStream")]
    DuplicateId,
    /// etcd answers a negative start as if it had been compacted.
    #[error("{}", ApiError::Compacted)]
    NegativeStart,
}

/// State of a watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// It has been sent everything published; new revisions are pushed to it.
    Synced,
    /// It reads the history; new revisions are not pushed to it.
    Lagging,
    /// It was ended, and waits for the client to cancel it.
    Compacted,
}

#[derive(Debug)]
pub(super) struct Watcher {
    pub(super) request: Request,
    pub(super) state: State,
    /// Changes before this revision have been sent, or are not wanted.
    pub(super) next_revision: i64,
    /// True if the next progress tick reports.
    pub(super) progress_due: bool,
}

impl Watcher {
    pub(super) fn wants(&self, record: &Record) -> bool {
        if record.is_tombstone() {
            !self.request.no_delete
        } else {
            !self.request.no_put
        }
    }

    /// Those of `records` that pass the filters; shared, not copied, when all do.
    pub(super) fn filter(&self, records: &Arc<[Arc<Record>]>) -> Arc<[Arc<Record>]> {
        if records.iter().all(|record| self.wants(record)) {
            return Arc::clone(records);
        }
        records
            .iter()
            .filter(|record| self.wants(record))
            .map(Arc::clone)
            .collect()
    }
}
