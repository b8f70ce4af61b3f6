//! Metrics of the agent.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

/// Cheap to clone; several nodes of one process may share one.
#[derive(Clone, Debug, Default)]
pub struct Metrics {
    pub allocations: Gauge,
    pub heartbeats: Counter,
    pub heartbeat_failures: Counter,
    pub registrations: Counter,
    pub watch_streams: Counter,
    pub watch_updates: Counter,
    pub watch_updates_stale: Counter,
    pub seen_revision: Gauge,
    pub reports: Counter,
    pub report_batches: Counter,
    pub report_failures: Counter,
    pub reports_pending: Gauge,
    pub gc_collected: Counter,
    pub dial_out: dial_out::Metrics,
    pub introduction: node_introduction::Metrics,
    pub local_state: local_state::Metrics,
    pub log_streams: Gauge,
    pub tasks: task_runner::Metrics,
    pub artifacts: artifact_fetch::Metrics,
}

impl Metrics {
    /// Registers the metrics, with the prefix `kafila_client_node_`.
    pub fn register(registry: &mut Registry) -> Self {
        let mut all = Self::default();
        let mut gauge = |name: &str, help: &str, metric: &Gauge| {
            registry.register(name, help, metric.clone());
        };
        gauge("allocations", "Allocations on the node", &all.allocations);
        gauge(
            "seen_revision",
            "Highest store revision acted on",
            &all.seen_revision,
        );
        gauge(
            "reports_pending",
            "Allocations with an unsent report",
            &all.reports_pending,
        );
        gauge(
            "log_streams",
            "Open streams of task output",
            &all.log_streams,
        );
        let mut counter = |name: &str, help: &str, metric: &Counter| {
            registry.register(name, help, metric.clone());
        };
        counter("heartbeats", "Answered heartbeats", &all.heartbeats);
        counter(
            "heartbeat_failures",
            "Failed heartbeats",
            &all.heartbeat_failures,
        );
        counter(
            "registrations",
            "Answered registrations",
            &all.registrations,
        );
        counter(
            "watch_streams",
            "Opened streams of allocations",
            &all.watch_streams,
        );
        counter(
            "watch_updates",
            "Updates received on streams of allocations",
            &all.watch_updates,
        );
        counter(
            "watch_updates_stale",
            "Updates ignored as stale",
            &all.watch_updates_stale,
        );
        counter("reports", "Acknowledged allocation reports", &all.reports);
        counter("report_batches", "Report batches sent", &all.report_batches);
        counter(
            "report_failures",
            "Report batches not acknowledged",
            &all.report_failures,
        );
        counter(
            "gc_collected",
            "Allocations collected to make room",
            &all.gc_collected,
        );
        counter(
            "local_state_commits",
            "Commits to the local state",
            &all.local_state.commits,
        );
        counter(
            "local_state_failures",
            "Failed commits to the local state",
            &all.local_state.failures,
        );
        all.dial_out = dial_out::Metrics::register(registry);
        all.introduction = node_introduction::Metrics::register(registry);
        all.tasks = task_runner::Metrics::register(registry);
        all.artifacts = artifact_fetch::Metrics::register(registry);
        all
    }
}
