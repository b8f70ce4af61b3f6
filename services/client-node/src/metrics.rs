//! Metrics of the agent.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

/// Bucket bounds of a task's start, in seconds: a process takes milliseconds, fetching an image would
/// take minutes.
const START_SECONDS: [f64; 10] = [0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0, 30.0];

/// Cheap to clone; several nodes of one process may share one.
#[derive(Clone, Debug)]
pub struct Metrics {
    pub allocations: Gauge,
    pub tasks_running: Gauge,
    pub allocs_complete: Counter,
    pub allocs_failed: Counter,
    pub allocs_restart: Counter,
    pub task_starts: Counter,
    pub task_start_failures: Counter,
    pub task_start_duration: Histogram,
    pub tasks_reattached: Counter,
    pub tasks_lost: Counter,
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
    pub local_state: local_state::Metrics,
    pub log_streams: Gauge,
}

impl Default for Metrics {
    fn default() -> Self {
        Self {
            allocations: Gauge::default(),
            tasks_running: Gauge::default(),
            allocs_complete: Counter::default(),
            allocs_failed: Counter::default(),
            allocs_restart: Counter::default(),
            task_starts: Counter::default(),
            task_start_failures: Counter::default(),
            task_start_duration: Histogram::new(START_SECONDS),
            tasks_reattached: Counter::default(),
            tasks_lost: Counter::default(),
            heartbeats: Counter::default(),
            heartbeat_failures: Counter::default(),
            registrations: Counter::default(),
            watch_streams: Counter::default(),
            watch_updates: Counter::default(),
            watch_updates_stale: Counter::default(),
            seen_revision: Gauge::default(),
            reports: Counter::default(),
            report_batches: Counter::default(),
            report_failures: Counter::default(),
            reports_pending: Gauge::default(),
            gc_collected: Counter::default(),
            local_state: local_state::Metrics::default(),
            log_streams: Gauge::default(),
        }
    }
}

impl Metrics {
    /// Registers the metrics, with the prefix `kafila_client_node_`.
    pub fn register(registry: &mut Registry) -> Self {
        let all = Self::default();
        let mut gauge = |name: &str, help: &str, metric: &Gauge| {
            registry.register(name, help, metric.clone());
        };
        gauge("allocations", "Allocations on the node", &all.allocations);
        gauge("tasks_running", "Running tasks", &all.tasks_running);
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
        counter(
            "allocs_complete",
            "Allocations that completed",
            &all.allocs_complete,
        );
        counter(
            "allocs_failed",
            "Allocations that failed",
            &all.allocs_failed,
        );
        counter("allocs_restart", "Task restarts", &all.allocs_restart);
        counter("task_starts", "Task starts", &all.task_starts);
        counter(
            "task_start_failures",
            "Failed task starts",
            &all.task_start_failures,
        );
        counter(
            "tasks_reattached",
            "Tasks recovered after a restart of the agent",
            &all.tasks_reattached,
        );
        counter(
            "tasks_lost",
            "Tasks not recovered after a restart of the agent",
            &all.tasks_lost,
        );
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
        registry.register_with_unit(
            "task_start_duration",
            "Time from the decision to start a task to its process",
            Unit::Seconds,
            all.task_start_duration.clone(),
        );
        all
    }
}
