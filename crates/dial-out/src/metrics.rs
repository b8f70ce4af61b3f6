//! Metrics of connections that the node opens.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

/// Cheap to clone; not exported until registered.
#[derive(Clone, Debug, Default)]
pub struct Metrics {
    outcomes: Family<OutcomeLabels, Counter>,
    open: Gauge,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OutcomeLabels {
    outcome: &'static str,
}

impl Metrics {
    /// Counts a connection that a gateway has asked for.
    pub(crate) fn count(&self, outcome: &'static str) {
        let labels = OutcomeLabels { outcome };
        self.outcomes.get_or_create(&labels).inc();
    }

    /// Counts an open connection until the guard is dropped.
    pub(crate) fn open(&self) -> Open {
        self.open.inc();
        Open(self.open.clone())
    }

    /// Registers everything below the service's prefix.
    pub fn register(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        registry.register(
            "dial_out_requests",
            "Connections that gateways have asked the node for, by outcome",
            metrics.outcomes.clone(),
        );
        registry.register(
            "dial_out_connections",
            "Open connections that the node has opened for gateways",
            metrics.open.clone(),
        );
        metrics
    }
}

/// An open connection.
#[derive(Debug)]
pub(crate) struct Open(Gauge);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.dec();
    }
}
