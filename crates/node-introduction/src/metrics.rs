//! Metrics of a node's certificate.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::registry::Registry;

/// Cheap to clone; several nodes of one process may share one.
#[derive(Clone, Debug, Default)]
pub struct Metrics {
    pub renewals: Counter,
    pub renewal_failures: Counter,
}

impl Metrics {
    /// Registers the metrics, with the prefix of `registry`.
    pub fn register(registry: &mut Registry) -> Self {
        let all = Self::default();
        registry.register(
            "certificate_renewals",
            "Renewals of the node's certificate",
            all.renewals.clone(),
        );
        registry.register(
            "certificate_renewal_failures",
            "Failed attempts to renew the node's certificate",
            all.renewal_failures.clone(),
        );
        all
    }
}
