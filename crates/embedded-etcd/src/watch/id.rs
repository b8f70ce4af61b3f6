//! Ids of watch streams and of watches.

/// Identifies a watch stream for as long as the store runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId(pub(super) u64);

/// Identifies a watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct WatcherRef {
    pub(super) stream: StreamId,
    pub(super) watch_id: i64,
}
