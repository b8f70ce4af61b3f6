//! Metrics of the runners.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

use crate::job_counters::JobCounters;

/// Bucket bounds of a task's start, in seconds: a process takes milliseconds, fetching an image may
/// take minutes.
const START_SECONDS: [f64; 10] = [0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0, 30.0];

/// Cheap to clone; several nodes of one process may share one.
#[derive(Clone, Debug)]
pub struct Metrics {
    pub tasks_running: Gauge,
    /// By job, group and task.
    pub jobs: JobCounters,
    pub task_starts: Counter,
    pub task_start_failures: Counter,
    pub task_start_duration: Histogram,
    pub tasks_reattached: Counter,
    pub tasks_lost: Counter,
    /// Renewals of a task's identity tokens.
    pub identity_renewals: Counter,
    pub identity_renewal_failures: Counter,
}

impl Default for Metrics {
    fn default() -> Self {
        Self {
            tasks_running: Gauge::default(),
            jobs: JobCounters::default(),
            task_starts: Counter::default(),
            task_start_failures: Counter::default(),
            task_start_duration: Histogram::new(START_SECONDS),
            tasks_reattached: Counter::default(),
            tasks_lost: Counter::default(),
            identity_renewals: Counter::default(),
            identity_renewal_failures: Counter::default(),
        }
    }
}

impl Metrics {
    /// Registers the metrics.
    pub fn register(registry: &mut Registry) -> Self {
        let all = Self::default();
        registry.register("tasks_running", "Running tasks", all.tasks_running.clone());
        let mut counter = |name: &str, help: &str, metric: &Counter| {
            registry.register(name, help, metric.clone());
        };
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
        counter(
            "identity_renewals",
            "Renewals of the identity tokens of running tasks",
            &all.identity_renewals,
        );
        counter(
            "identity_renewal_failures",
            "Failed renewals of identity tokens, which are retried",
            &all.identity_renewal_failures,
        );
        registry.register_with_unit(
            "task_start_duration",
            "Time from the decision to start a task to its process",
            Unit::Seconds,
            all.task_start_duration.clone(),
        );
        registry.register_collector(Box::new(all.jobs.clone()));
        all
    }
}
