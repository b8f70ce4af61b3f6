//! Everything this service measures.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

/// Why something was written: one of [`rollout::Reason`]'s words.
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
        registry.register(
            "active",
            "Deployments that are being worked on",
            metrics.active.clone(),
        );
        registry.register(
            "actions",
            "Transactions written, by reason",
            metrics.actions.clone(),
        );
        registry.register(
            "write_failures",
            "Transactions that could not be written and are asked for again",
            metrics.write_failures.clone(),
        );
        metrics
    }
}
