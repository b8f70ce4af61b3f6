//! Metrics of a replica.

use std::sync::atomic::AtomicU64;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

/// Cheap to clone; not exported until registered.
#[derive(Clone, Debug, Default)]
pub struct ReplicaMetrics {
    pub applied_revision: Gauge,
    /// Known revisions of the store that are not applied yet.
    pub lag_revisions: Gauge,
    pub last_contact_seconds: Gauge<f64, AtomicU64>,
    pub changes: Counter,
    pub relists: Counter,
    pub watch_failures: Counter,
    pub undecodable: Counter,
    pub apply_seconds: Counter<f64, AtomicU64>,
}

impl ReplicaMetrics {
    /// Registers everything as `replica_…` below the service's prefix.
    pub fn register(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        let registry = registry.sub_registry_with_prefix("replica");
        registry.register(
            "applied_revision",
            "Revision of the newest snapshot",
            metrics.applied_revision.clone(),
        );
        registry.register(
            "lag_revisions",
            "Known revisions of the store that are not applied yet",
            metrics.lag_revisions.clone(),
        );
        registry.register(
            "last_contact_seconds",
            "Time since the last message from the store",
            metrics.last_contact_seconds.clone(),
        );
        registry.register("changes", "Changes applied", metrics.changes.clone());
        registry.register(
            "relists",
            "Lists of the whole store",
            metrics.relists.clone(),
        );
        registry.register(
            "watch_failures",
            "Watches that broke",
            metrics.watch_failures.clone(),
        );
        registry.register(
            "undecodable",
            "Values skipped because they cannot be decoded",
            metrics.undecodable.clone(),
        );
        registry.register(
            "apply_seconds",
            "Time spent decoding and applying changes",
            metrics.apply_seconds.clone(),
        );
        metrics
    }
}
