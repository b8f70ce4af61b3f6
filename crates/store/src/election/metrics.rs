//! Metrics of elections.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

/// Cheap to clone; not exported until registered.
#[derive(Clone, Debug, Default)]
pub struct ElectionMetrics {
    /// 1 while this process leads.
    pub leader: Gauge,
    pub terms: Counter,
}

impl ElectionMetrics {
    /// Registers everything below the service's prefix.
    pub fn register(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        registry.register(
            "leader",
            "1 while this process leads",
            metrics.leader.clone(),
        );
        registry.register("terms", "Terms this process has led", metrics.terms.clone());
        metrics
    }
}
