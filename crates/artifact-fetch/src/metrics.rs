//! Metrics of downloads.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

/// Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Metrics {
    pub downloads: Counter,
    pub cache_hits: Counter,
    pub failures: Counter,
    pub cache_bytes: Gauge,
}

impl Metrics {
    /// Registers the metrics.
    pub fn register(registry: &mut Registry) -> Self {
        let all = Self::default();
        let mut counter = |name: &str, help: &str, metric: &Counter| {
            registry.register(name, help, metric.clone());
        };
        counter(
            "artifact_downloads",
            "Artifacts that a server answered with content",
            &all.downloads,
        );
        counter(
            "artifact_cache_hits",
            "Artifacts that needed no content of a server",
            &all.cache_hits,
        );
        counter("artifact_failures", "Artifacts that failed", &all.failures);
        registry.register(
            "artifact_cache_bytes",
            "Size of the downloads in the cache",
            all.cache_bytes.clone(),
        );
        all
    }
}
