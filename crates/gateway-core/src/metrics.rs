//! Metrics of commits and fresh reads, and a gauge that counts live values.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

/// Cheap to clone; not exported until registered.
#[derive(Clone, Debug)]
pub struct Metrics {
    pub commits: Counter,
    /// Transactions that found a key changed and were decided on again.
    pub conflicts: Counter,
    pub commit_seconds: Histogram,
    /// Requests in each transaction that requests may share.
    pub commit_group: Histogram,
    /// Requests for the store's revision; many linearizable reads share one.
    pub revision_reads: Counter,
}

impl Default for Metrics {
    fn default() -> Self {
        Self {
            commits: Counter::default(),
            conflicts: Counter::default(),
            // 0.5 ms to 16 s: from one member on a fast disk to an election of etcd's.
            commit_seconds: Histogram::new(exponential_buckets(0.0005, 2.0, 16)),
            commit_group: Histogram::new(exponential_buckets(1.0, 2.0, 8)),
            revision_reads: Counter::default(),
        }
    }
}

impl Metrics {
    /// Registers everything below the service's prefix.
    pub fn register(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        let counters = [
            ("commits", "Transactions committed", &metrics.commits),
            (
                "commit_conflicts",
                "Transactions decided on again after a conflict",
                &metrics.conflicts,
            ),
            (
                "revision_reads",
                "Requests for the store's revision",
                &metrics.revision_reads,
            ),
        ];
        for (name, help, counter) in counters {
            registry.register(name, help, counter.clone());
        }
        registry.register(
            "commit_seconds",
            "Duration of a transaction, retries included",
            metrics.commit_seconds.clone(),
        );
        registry.register(
            "commit_group",
            "Registrations in one transaction",
            metrics.commit_group.clone(),
        );
        metrics
    }
}

/// Increments a gauge for as long as it lives.
#[derive(Debug)]
pub struct GaugeGuard(Gauge);

impl GaugeGuard {
    pub fn new(gauge: &Gauge) -> Self {
        gauge.inc();
        Self(gauge.clone())
    }
}

impl Drop for GaugeGuard {
    fn drop(&mut self) {
        self.0.dec();
    }
}
