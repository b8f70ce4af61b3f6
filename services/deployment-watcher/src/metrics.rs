//! The metrics of this service.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

/// The reason of a write, by [`rollout::Reason::as_str`].
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct ReasonLabel {
    pub(crate) reason: &'static str,
}

#[derive(Clone, Debug, Default)]
pub struct Metrics {
    pub active: Gauge,
    pub(crate) actions: Family<ReasonLabel, Counter>,
    pub write_failures: Counter,
}

impl Metrics {
    pub(crate) fn register(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        registry.register("active", "Active deployments", metrics.active.clone());
        registry.register(
            "actions",
            "Transactions written, by reason",
            metrics.actions.clone(),
        );
        registry.register(
            "write_failures",
            "Failed writes, which are retried",
            metrics.write_failures.clone(),
        );
        metrics
    }
}
