//! Options of a replica.

use std::time::Duration;

use state::Table;

use crate::replica::metrics::ReplicaMetrics;

#[derive(Clone, Debug)]
pub struct ReplicaOptions {
    /// Keys per page of a list. For each page the server counts all remaining keys: 100,000 keys take
    /// 5 s in pages of 100, 0.3 s in pages of 10,000.
    pub page_size: u32,
    /// Interval of progress requests on a quiet watch: the freshness of `last_contact`.
    pub progress_interval: Duration,
    /// Time of silence after which the watch is resumed on a new stream: a few intervals, because a
    /// loaded server answers late.
    pub silence_limit: Duration,
    /// Batches of changes that a subscriber may lag behind before it has to start again from a
    /// snapshot; 1,024 batches are seconds of a loaded store.
    pub delta_capacity: usize,
    pub metrics: ReplicaMetrics,
    /// Tables that the replica leaves out: their values are neither decoded nor held.
    pub without: &'static [Table],
}

impl Default for ReplicaOptions {
    fn default() -> Self {
        Self {
            page_size: 10_000,
            progress_interval: Duration::from_secs(1),
            silence_limit: Duration::from_secs(5),
            delta_capacity: 1_024,
            metrics: ReplicaMetrics::default(),
            without: &[],
        }
    }
}
