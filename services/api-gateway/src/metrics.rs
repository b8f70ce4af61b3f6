//! Everything that a gateway measures beside its RPCs and its replica.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

/// Cheap to clone; counts into nowhere until registered.
#[derive(Clone, Debug)]
pub struct Metrics {
    pub commits: Counter,
    /// How often a transaction found something changed and was decided on again.
    pub conflicts: Counter,
    pub commit_seconds: Histogram,
    pub jobs_registered: Counter,
    pub jobs_unchanged: Counter,
    pub jobs_refused_overload: Counter,
    pub dry_runs: Counter,
    pub dry_run_seconds: Histogram,
    pub blocked_queries: Gauge,
    /// How often many linearizable reads shared one question to the store: reads minus this.
    pub revision_reads: Counter,
    pub node_sessions: Gauge,
    pub heartbeats: Counter,
    pub liveness_messages: Counter,
    pub liveness_pending: Gauge,
    pub liveness_reconnects: Counter,
    pub assignments_sent: Counter,
    pub full_updates: Counter,
    pub reports: Counter,
    /// Reports in one transaction.
    pub report_batch: Histogram,
    pub log_relays: Gauge,
}

impl Default for Metrics {
    fn default() -> Self {
        Self {
            commits: Counter::default(),
            conflicts: Counter::default(),
            // 0.5 ms to 16 s: from one member on a fast disk to an election of etcd's.
            commit_seconds: Histogram::new(exponential_buckets(0.0005, 2.0, 16)),
            jobs_registered: Counter::default(),
            jobs_unchanged: Counter::default(),
            jobs_refused_overload: Counter::default(),
            dry_runs: Counter::default(),
            // As above: from a small job on a quiet gateway to one that has to be waited for.
            dry_run_seconds: Histogram::new(exponential_buckets(0.0005, 2.0, 16)),
            blocked_queries: Gauge::default(),
            revision_reads: Counter::default(),
            node_sessions: Gauge::default(),
            heartbeats: Counter::default(),
            liveness_messages: Counter::default(),
            liveness_pending: Gauge::default(),
            liveness_reconnects: Counter::default(),
            assignments_sent: Counter::default(),
            full_updates: Counter::default(),
            reports: Counter::default(),
            // 1 to 1,024: a transaction holds 1,000 operations.
            report_batch: Histogram::new(exponential_buckets(1.0, 2.0, 11)),
            log_relays: Gauge::default(),
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
                "Transactions decided on again",
                &metrics.conflicts,
            ),
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
            ("dry_runs", "Jobs tried out", &metrics.dry_runs),
            (
                "revision_reads",
                "Questions for the store's revision",
                &metrics.revision_reads,
            ),
            ("heartbeats", "Heartbeats of nodes", &metrics.heartbeats),
            (
                "liveness_messages",
                "Messages to the cluster-controller",
                &metrics.liveness_messages,
            ),
            (
                "liveness_reconnects",
                "Streams to the cluster-controller",
                &metrics.liveness_reconnects,
            ),
            (
                "assignments_sent",
                "Assignments sent to nodes",
                &metrics.assignments_sent,
            ),
            (
                "full_updates",
                "Times a node was sent everything",
                &metrics.full_updates,
            ),
            ("alloc_reports", "Reports of allocations", &metrics.reports),
        ];
        for (name, help, counter) in counters {
            registry.register(name, help, counter.clone());
        }
        let gauges = [
            (
                "blocked_queries",
                "Reads waiting for a change",
                &metrics.blocked_queries,
            ),
            (
                "node_sessions",
                "Open streams of assignments",
                &metrics.node_sessions,
            ),
            (
                "liveness_pending",
                "Nodes heard from and not passed on",
                &metrics.liveness_pending,
            ),
            (
                "log_relays",
                "Open streams of task output",
                &metrics.log_relays,
            ),
        ];
        for (name, help, gauge) in gauges {
            registry.register(name, help, gauge.clone());
        }
        registry.register(
            "commit_seconds",
            "Time that a transaction took, retries included",
            metrics.commit_seconds.clone(),
        );
        registry.register(
            "dry_run_seconds",
            "Time that a dry run took, waiting for its turn included",
            metrics.dry_run_seconds.clone(),
        );
        registry.register(
            "report_batch_size",
            "Reports in one transaction",
            metrics.report_batch.clone(),
        );
        metrics
    }
}

/// Counts one more for as long as it lives.
#[derive(Debug)]
pub struct Held(Gauge);

impl Held {
    pub fn new(gauge: &Gauge) -> Self {
        gauge.inc();
        Self(gauge.clone())
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.0.dec();
    }
}
