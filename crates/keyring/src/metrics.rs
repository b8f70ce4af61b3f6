//! The metric of the maintenance of keys.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::registry::Registry;

/// Cheap to clone; not exported until registered.
#[derive(Clone, Debug, Default)]
pub struct Metrics {
    /// Failed rotations and unusable key files.
    pub(crate) keyring_failures: Counter,
}

impl Metrics {
    /// Registers everything below the service's prefix.
    pub fn register(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        registry.register(
            "keyring_failures",
            "Failed maintenance of the keys that sign identity tokens",
            metrics.keyring_failures.clone(),
        );
        metrics
    }
}
