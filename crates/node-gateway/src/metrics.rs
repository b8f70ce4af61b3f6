//! Metrics of node sessions, heartbeats and reports.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

/// Cheap to clone; not exported until registered.
#[derive(Clone, Debug)]
pub struct Metrics {
    pub node_sessions: Gauge,
    /// Streams of services.
    pub service_streams: Gauge,
    pub heartbeats: Counter,
    /// Heartbeats that were refused because the relay to the cluster-controller does not work.
    pub heartbeats_refused: Counter,
    pub liveness_messages: Counter,
    pub liveness_pending: Gauge,
    pub liveness_reconnects: Counter,
    pub assignments_sent: Counter,
    pub full_updates: Counter,
    pub reports: Counter,
    /// Reports in one transaction.
    pub report_batch: Histogram,
    introductions: Family<IntroductionLabels, Counter>,
    /// Signed identity tokens.
    pub identity_tokens: Counter,
    /// Requests for identity tokens that were refused or failed.
    pub identity_refusals: Counter,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct IntroductionLabels {
    /// `introduced`, `renewed` or `refused`.
    outcome: &'static str,
}

impl Default for Metrics {
    fn default() -> Self {
        Self {
            node_sessions: Gauge::default(),
            service_streams: Gauge::default(),
            heartbeats: Counter::default(),
            heartbeats_refused: Counter::default(),
            liveness_messages: Counter::default(),
            liveness_pending: Gauge::default(),
            liveness_reconnects: Counter::default(),
            assignments_sent: Counter::default(),
            full_updates: Counter::default(),
            reports: Counter::default(),
            // 1 to 1,024: a transaction holds 1,000 operations.
            report_batch: Histogram::new(exponential_buckets(1.0, 2.0, 11)),
            introductions: Family::default(),
            identity_tokens: Counter::default(),
            identity_refusals: Counter::default(),
        }
    }
}

impl Metrics {
    /// Counts a request of a node for a certificate.
    pub(crate) fn count_introduction(&self, outcome: &'static str) {
        let labels = IntroductionLabels { outcome };
        self.introductions.get_or_create(&labels).inc();
    }

    /// Registers everything below the service's prefix.
    pub fn register(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        registry.register(
            "node_introductions",
            "Requests of nodes for certificates, by outcome: introduced, renewed, refused",
            metrics.introductions.clone(),
        );
        let counters = [
            ("heartbeats", "Heartbeats of nodes", &metrics.heartbeats),
            (
                "heartbeats_refused",
                "Heartbeats refused for lack of a working relay to the cluster-controller",
                &metrics.heartbeats_refused,
            ),
            (
                "liveness_messages",
                "Messages with heartbeats to the cluster-controller",
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
                "Updates that sent a node all of its allocations",
                &metrics.full_updates,
            ),
            ("alloc_reports", "Reports of allocations", &metrics.reports),
            (
                "identity_tokens",
                "Signed identity tokens of tasks",
                &metrics.identity_tokens,
            ),
            (
                "identity_refusals",
                "Requests of nodes for identity tokens that were refused or failed",
                &metrics.identity_refusals,
            ),
        ];
        for (name, help, counter) in counters {
            registry.register(name, help, counter.clone());
        }
        let gauges = [
            (
                "node_sessions",
                "Open streams of assignments",
                &metrics.node_sessions,
            ),
            (
                "service_streams",
                "Open streams of the services that nodes look up",
                &metrics.service_streams,
            ),
            (
                "liveness_pending",
                "Nodes with a heartbeat that was not passed on yet",
                &metrics.liveness_pending,
            ),
        ];
        for (name, help, gauge) in gauges {
            registry.register(name, help, gauge.clone());
        }
        registry.register(
            "report_batch_size",
            "Reports in one transaction",
            metrics.report_batch.clone(),
        );
        metrics
    }
}
