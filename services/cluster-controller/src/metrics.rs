//! The metrics of this service.

pub mod etcd;
pub(crate) mod jobs;

use std::sync::atomic::AtomicU64;

use controller::garbage::Counts;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use etcd::EtcdMetrics;

#[derive(Clone, Debug, Default)]
pub struct Metrics {
    pub heartbeat_active: Gauge,
    pub gateways: Gauge,
    /// In seconds.
    pub heartbeat_time_lost: Gauge<f64, AtomicU64>,
    pub heartbeats: Counter,
    pub mass_failures: Counter,
    pub heartbeat_invalidate: Counter,
    pub node_ready: Counter,
    pub write_failures: Counter,
    pub evals_created: Counter,
    pub draining_nodes: Gauge,
    pub drain_migrations: Counter,
    pub drains_completed: Counter,
    pub periodic_jobs: Gauge,
    pub periodic_launches: Counter,
    pub periodic_skips: Counter,
    pub deletions_taken_back: Counter,
    pub collected: Family<[(&'static str, &'static str); 1], Counter>,
    pub etcd: EtcdMetrics,
}

impl Metrics {
    pub(crate) fn register(registry: &mut Registry) -> Self {
        let metrics = Self {
            etcd: EtcdMetrics::register(registry),
            ..Self::default()
        };
        registry.register(
            "heartbeat_active_nodes",
            "Nodes with a running heartbeat timer",
            metrics.heartbeat_active.clone(),
        );
        registry.register("gateways", "Connected gateways", metrics.gateways.clone());
        registry.register(
            "heartbeat_time_lost_seconds",
            "Time of this term that did not count against nodes: stalls of this process, no contact with the store or gateways",
            metrics.heartbeat_time_lost.clone(),
        );
        registry.register(
            "mass_failures",
            "Times that most nodes stopped sending heartbeats at once",
            metrics.mass_failures.clone(),
        );
        registry.register(
            "heartbeats",
            "Heartbeats reported by gateways",
            metrics.heartbeats.clone(),
        );
        registry.register(
            "heartbeat_invalidate",
            "Nodes marked down or disconnected after missing heartbeats",
            metrics.heartbeat_invalidate.clone(),
        );
        registry.register(
            "node_ready",
            "Nodes marked ready",
            metrics.node_ready.clone(),
        );
        registry.register(
            "write_failures",
            "Failed writes, which are retried",
            metrics.write_failures.clone(),
        );
        registry.register(
            "evals_created",
            "Evaluations created because of node transitions and drains",
            metrics.evals_created.clone(),
        );
        registry.register(
            "draining_nodes",
            "Draining nodes",
            metrics.draining_nodes.clone(),
        );
        registry.register(
            "drain_migrations",
            "Allocations marked for migration by drains",
            metrics.drain_migrations.clone(),
        );
        registry.register(
            "drains_completed",
            "Completed drains",
            metrics.drains_completed.clone(),
        );
        registry.register(
            "periodic_jobs",
            "Periodic jobs with a next launch",
            metrics.periodic_jobs.clone(),
        );
        registry.register(
            "periodic_launches",
            "Launches of periodic jobs",
            metrics.periodic_launches.clone(),
        );
        registry.register(
            "periodic_skips",
            "Launches of periodic jobs that were skipped because a child was still active",
            metrics.periodic_skips.clone(),
        );
        registry.register(
            "deletions_taken_back",
            "Deletions that timed out and were reverted",
            metrics.deletions_taken_back.clone(),
        );
        registry.register(
            "collected",
            "Garbage-collected objects, by kind",
            metrics.collected.clone(),
        );
        metrics
    }

    /// Counts the objects that one transaction deleted.
    pub(crate) fn collected(&self, counts: Counts) {
        let kinds = [
            ("evaluation", counts.evals),
            ("allocation", counts.allocs),
            ("job", counts.jobs),
            ("deployment", counts.deployments),
            ("node", counts.nodes),
        ];
        for (kind, count) in kinds.into_iter().filter(|(_, count)| *count > 0) {
            self.collected
                .get_or_create(&[("kind", kind)])
                .inc_by(count);
        }
    }
}
