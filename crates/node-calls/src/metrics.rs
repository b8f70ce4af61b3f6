//! Metrics of relays between callers and nodes.

use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

/// Cheap to clone; not exported until registered.
#[derive(Clone, Debug, Default)]
pub struct Metrics {
    pub log_relays: Gauge,
    pub exec_relays: Gauge,
    pub file_relays: Gauge,
}

impl Metrics {
    /// Registers everything below the service's prefix.
    pub fn register(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        let gauges = [
            (
                "log_relays",
                "Open streams of task output",
                &metrics.log_relays,
            ),
            (
                "exec_relays",
                "Commands beside tasks that callers run through this gateway",
                &metrics.exec_relays,
            ),
            (
                "file_relays",
                "Files of allocations that callers read through this gateway",
                &metrics.file_relays,
            ),
        ];
        for (name, help, gauge) in gauges {
            registry.register(name, help, gauge.clone());
        }
        metrics
    }
}
