//! Metrics of registrations, dry runs, blocked reads and the space in etcd.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

/// Cheap to clone; not exported until registered.
#[derive(Clone, Debug)]
pub struct Metrics {
    pub jobs_registered: Counter,
    pub jobs_unchanged: Counter,
    pub jobs_refused_overload: Counter,
    pub dry_runs: Counter,
    pub dry_run_seconds: Histogram,
    pub blocked_queries: Gauge,
    pub refusing_for_space: Gauge,
}

impl Default for Metrics {
    fn default() -> Self {
        Self {
            jobs_registered: Counter::default(),
            jobs_unchanged: Counter::default(),
            jobs_refused_overload: Counter::default(),
            dry_runs: Counter::default(),
            // 0.5 ms to 16 s: from a small job on an idle gateway to a job that waits for others.
            dry_run_seconds: Histogram::new(exponential_buckets(0.0005, 2.0, 16)),
            blocked_queries: Gauge::default(),
            refusing_for_space: Gauge::default(),
        }
    }
}

impl Metrics {
    /// Registers everything below the service's prefix.
    pub fn register(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        let counters = [
            ("jobs_registered", "Jobs written", &metrics.jobs_registered),
            (
                "jobs_unchanged",
                "Registrations that changed nothing",
                &metrics.jobs_unchanged,
            ),
            (
                "jobs_refused_overload",
                "Jobs refused for overload",
                &metrics.jobs_refused_overload,
            ),
            ("dry_runs", "Dry runs of jobs", &metrics.dry_runs),
        ];
        for (name, help, counter) in counters {
            registry.register(name, help, counter.clone());
        }
        registry.register(
            "blocked_queries",
            "Reads waiting for a change",
            metrics.blocked_queries.clone(),
        );
        registry.register(
            "refusing_for_space",
            "1 while new work is refused because etcd is nearly full",
            metrics.refusing_for_space.clone(),
        );
        registry.register(
            "dry_run_seconds",
            "Duration of a dry run, queueing included",
            metrics.dry_run_seconds.clone(),
        );
        metrics
    }
}
