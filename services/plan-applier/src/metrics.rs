//! Metrics of the service.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

/// The outcome of a plan or of a transaction: one of a few words.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct ResultLabel {
    pub(crate) result: &'static str,
}

/// From half a millisecond to four seconds.
fn seconds() -> Histogram {
    Histogram::new(exponential_buckets(0.0005, 2.0, 14))
}

#[derive(Clone, Debug)]
pub struct Metrics {
    pub queue_depth: Gauge,
    pub(crate) plans: Family<ResultLabel, Counter>,
    pub nodes_rejected: Counter,
    pub nodes_marked: Counter,
    pub placements: Counter,
    pub(crate) commits: Family<ResultLabel, Counter>,
    pub staged_refused: Counter,
    pub commit_plans: Histogram,
    pub evaluate: Histogram,
    pub apply: Histogram,
    pub submit: Histogram,
}

impl Metrics {
    pub(crate) fn register(registry: &mut Registry) -> Self {
        let metrics = Self {
            queue_depth: Gauge::default(),
            plans: Family::default(),
            nodes_rejected: Counter::default(),
            nodes_marked: Counter::default(),
            placements: Counter::default(),
            commits: Family::default(),
            staged_refused: Counter::default(),
            // Up to as many plans as one transaction can hold.
            commit_plans: Histogram::new(exponential_buckets(1.0, 2.0, 9)),
            evaluate: seconds(),
            apply: seconds(),
            submit: seconds(),
        };
        registry.register(
            "queue_depth",
            "Unanswered plans",
            metrics.queue_depth.clone(),
        );
        registry.register(
            "plans",
            "Plans answered: whole, partial, refused",
            metrics.plans.clone(),
        );
        registry.register(
            "nodes_rejected",
            "Rejected parts of plans, one per node",
            metrics.nodes_rejected.clone(),
        );
        registry.register(
            "nodes_marked",
            "Nodes made ineligible after too many rejections",
            metrics.nodes_marked.clone(),
        );
        registry.register(
            "placements",
            "Placements committed",
            metrics.placements.clone(),
        );
        registry.register(
            "commits",
            "Transactions: committed, conflict, failed",
            metrics.commits.clone(),
        );
        registry.register(
            "staged_refused",
            "Refused transactions that move or delete staged pieces of plans",
            metrics.staged_refused.clone(),
        );
        registry.register(
            "commit_plans",
            "Plans in one transaction",
            metrics.commit_plans.clone(),
        );
        let mut histogram = |name, help, histogram: &Histogram| {
            registry.register(name, help, histogram.clone());
        };
        histogram("evaluate_seconds", "Verifying one plan", &metrics.evaluate);
        histogram(
            "apply_seconds",
            "Committing one transaction",
            &metrics.apply,
        );
        histogram(
            "submit_seconds",
            "From a plan to its answer",
            &metrics.submit,
        );
        metrics
    }

    pub(crate) fn plan(&self, result: &'static str) {
        self.plans.get_or_create(&ResultLabel { result }).inc();
    }

    pub(crate) fn commit(&self, result: &'static str) {
        self.commits.get_or_create(&ResultLabel { result }).inc();
    }
}
