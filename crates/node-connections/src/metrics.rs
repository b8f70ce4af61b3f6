//! Metrics of connections that nodes open.

use gateway_core::GaugeGuard;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

/// Cheap to clone; not exported until registered.
#[derive(Clone, Debug, Default)]
pub struct Metrics {
    requests: Family<OutcomeLabels, Counter>,
    relays: Family<OutcomeLabels, Counter>,
    open: Gauge,
    pub(crate) awaiting: Gauge,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OutcomeLabels {
    outcome: &'static str,
}

impl Metrics {
    /// Counts a connection that this gateway has asked a node for.
    pub(crate) fn count_request(&self, outcome: &'static str) {
        let labels = OutcomeLabels { outcome };
        self.requests.get_or_create(&labels).inc();
    }

    /// Counts a connection that this gateway has asked the other gateways for.
    pub(crate) fn count_relay(&self, outcome: &'static str) {
        let labels = OutcomeLabels { outcome };
        self.relays.get_or_create(&labels).inc();
    }

    /// Counts an open connection until the guard is dropped.
    pub(crate) fn open(&self) -> GaugeGuard {
        GaugeGuard::new(&self.open)
    }

    /// Registers everything below the service's prefix.
    pub fn register(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        registry.register(
            "node_connection_requests",
            "Connections that nodes were asked to open to this gateway, by outcome",
            metrics.requests.clone(),
        );
        registry.register(
            "node_connection_relays",
            "Connections to nodes that other gateways were asked for, by outcome",
            metrics.relays.clone(),
        );
        registry.register(
            "node_connections",
            "Open connections that nodes have opened to this gateway",
            metrics.open.clone(),
        );
        registry.register(
            "awaiting_nodes",
            "Nodes that await requests for connections at this gateway",
            metrics.awaiting.clone(),
        );
        metrics
    }
}
