//! How a replica behaves.

use std::time::Duration;

use crate::replica::metrics::ReplicaMetrics;

#[derive(Clone, Debug)]
pub struct ReplicaOptions {
    /// Keys a page when listing. Each page costs the server a count of all that is left: 100,000
    /// keys take 5 s in pages of 100, 0.3 s in pages of 10,000.
    pub page_size: u32,
    /// How often a quiet watch is asked how far it has come: the freshness of `last_contact`.
    pub progress_interval: Duration,
    /// How long the store may be silent, asked or not, before the watch is given up and started
    /// again: a few intervals, because a loaded server answers late.
    pub silence_limit: Duration,
    /// How many batches of changes a subscriber may be behind before it has to start again from a
    /// snapshot. A batch is what came in together; 1,024 are seconds of a loaded store.
    pub delta_capacity: usize,
    pub metrics: ReplicaMetrics,
}

impl Default for ReplicaOptions {
    fn default() -> Self {
        Self {
            page_size: 10_000,
            progress_interval: Duration::from_secs(1),
            silence_limit: Duration::from_secs(5),
            delta_capacity: 1_024,
            metrics: ReplicaMetrics::default(),
        }
    }
}
