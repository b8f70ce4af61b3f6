//! Metrics of the DNS server.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::registry::Registry;

/// Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct DnsMetrics {
    pub queries: Counter,
    /// Answers without data because no gateway has answered yet.
    pub failures: Counter,
    /// Questions outside of the zone, or that the node may not ask.
    pub refusals: Counter,
    /// Requests beyond the limit of those in progress.
    pub dropped: Counter,
}

impl DnsMetrics {
    /// Registers the metrics.
    pub fn register(registry: &mut Registry) -> Self {
        let all = Self::default();
        for (name, help, metric) in [
            ("dns_queries", "DNS queries", &all.queries),
            (
                "dns_failures",
                "DNS queries without an answer, because no gateway has answered yet",
                &all.failures,
            ),
            (
                "dns_refusals",
                "DNS queries for names outside of the domain, or in namespaces without an allocation here",
                &all.refusals,
            ),
            (
                "dns_dropped",
                "DNS queries dropped because too many were in progress",
                &all.dropped,
            ),
        ] {
            registry.register(name, help, metric.clone());
        }
        all
    }
}
