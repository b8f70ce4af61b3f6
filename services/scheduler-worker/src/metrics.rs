//! The metrics of this service.

use std::time::Duration;

use model::JobType;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct TypeLabel {
    r#type: &'static str,
}

/// From half a millisecond to four seconds.
fn seconds() -> Histogram {
    Histogram::new(exponential_buckets(0.0005, 2.0, 14))
}

#[derive(Clone, Debug)]
pub struct Metrics {
    pub busy: Gauge,
    pub acked: Counter,
    pub nacked: Counter,
    pub plans_submitted: Counter,
    pub plans_refused: Counter,
    pub placements: Counter,
    pub wait_for_index: Histogram,
    invoke_scheduler: Family<TypeLabel, Histogram, fn() -> Histogram>,
    pub submit_plan: Histogram,
}

impl Metrics {
    pub(crate) fn register(registry: &mut Registry) -> Self {
        let metrics = Self {
            busy: Gauge::default(),
            acked: Counter::default(),
            nacked: Counter::default(),
            plans_submitted: Counter::default(),
            plans_refused: Counter::default(),
            placements: Counter::default(),
            wait_for_index: seconds(),
            invoke_scheduler: Family::new_with_constructor(seconds),
            submit_plan: seconds(),
        };
        let mut counter =
            |name, help, counter: &Counter| registry.register(name, help, counter.clone());
        counter("evals_acked", "Completed evaluations", &metrics.acked);
        counter("evals_nacked", "Nacked evaluations", &metrics.nacked);
        counter(
            "plans_submitted",
            "Plans sent to the plan-applier",
            &metrics.plans_submitted,
        );
        counter(
            "plans_refused",
            "Plans that were refused in part or as a whole",
            &metrics.plans_refused,
        );
        counter("placements", "Placements committed", &metrics.placements);
        registry.register("busy", "Evaluations in progress", metrics.busy.clone());
        let mut histogram = |name, help, histogram: &Histogram| {
            registry.register(name, help, histogram.clone());
        };
        histogram(
            "wait_for_index_seconds",
            "Wait until the replica has reached an evaluation's index",
            &metrics.wait_for_index,
        );
        histogram(
            "submit_plan_seconds",
            "From a plan to its result",
            &metrics.submit_plan,
        );
        registry.register(
            "invoke_scheduler_seconds",
            "One run of the scheduler, by type",
            metrics.invoke_scheduler.clone(),
        );
        metrics
    }

    pub(crate) fn scheduler_ran(&self, job_type: JobType, elapsed: Duration) {
        let r#type = job_type.as_str();
        self.invoke_scheduler
            .get_or_create(&TypeLabel { r#type })
            .observe(elapsed.as_secs_f64());
    }
}
