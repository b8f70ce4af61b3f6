//! Everything this service measures.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use upkeep::garbage::Counts;

#[derive(Clone, Debug, Default)]
pub struct Metrics {
    pub heartbeat_active: Gauge,
    pub gateways: Gauge,
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
}

impl Metrics {
    pub(crate) fn register(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        registry.register(
            "heartbeat_active_nodes",
            "Nodes whose heartbeats are watched for silence",
            metrics.heartbeat_active.clone(),
        );
        registry.register(
            "gateways",
            "Gateways that report heartbeats",
            metrics.gateways.clone(),
        );
        registry.register(
            "mass_failures",
            "Times that too many nodes fell silent at once to be believed",
            metrics.mass_failures.clone(),
        );
        registry.register(
            "heartbeats",
            "Heartbeats passed on by gateways",
            metrics.heartbeats.clone(),
        );
        registry.register(
            "heartbeat_invalidate",
            "Nodes found down for want of a heartbeat",
            metrics.heartbeat_invalidate.clone(),
        );
        registry.register(
            "node_ready",
            "Nodes found ready",
            metrics.node_ready.clone(),
        );
        registry.register(
            "write_failures",
            "Transitions that could not be written and are asked for again",
            metrics.write_failures.clone(),
        );
        registry.register(
            "evals_created",
            "Evaluations made because a node came, went or drains",
            metrics.evals_created.clone(),
        );
        registry.register(
            "draining_nodes",
            "Nodes whose allocations are to leave",
            metrics.draining_nodes.clone(),
        );
        registry.register(
            "drain_migrations",
            "Allocations told to leave a draining node",
            metrics.drain_migrations.clone(),
        );
        registry.register(
            "drains_completed",
            "Drains that have come to their end",
            metrics.drains_completed.clone(),
        );
        registry.register(
            "periodic_jobs",
            "Periodic jobs that are to be launched",
            metrics.periodic_jobs.clone(),
        );
        registry.register(
            "periodic_launches",
            "Launches of periodic jobs",
            metrics.periodic_launches.clone(),
        );
        registry.register(
            "periodic_skips",
            "Times that periodic jobs were not launched because a child was still at work",
            metrics.periodic_skips.clone(),
        );
        registry.register(
            "deletions_taken_back",
            "Objects that are back because nobody finished deleting them",
            metrics.deletions_taken_back.clone(),
        );
        registry.register(
            "collected",
            "Objects that nobody needed any more and that were deleted, by kind",
            metrics.collected.clone(),
        );
        metrics
    }

    /// Counts what one transaction deleted.
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
