//! Wiring of the node gateway: its shared state and its loops.

use std::sync::Arc;

use gateway_core::Core;
use keyring::Keyring;
use node_calls::NodeCalls;
use service_kit::CancellationToken;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tracing::{Instrument as _, info_span};

use crate::introduction::MAX_INTRODUCTIONS;
use crate::metrics::Metrics;
use crate::node_gateway::{NodeConfig, NodeGateway};
use crate::report_loop::ReportQueue;
use crate::service_loop::{self, SharedIndex};
use crate::sessions::Sessions;
use crate::shared_heartbeats::SharedHeartbeats;
use crate::{detach_loop, dispatch_loop, liveness_loop, report_loop, services_loop};

/// A node gateway whose loops do not run yet.
#[derive(Debug)]
pub struct Mounted {
    gateway: Arc<NodeGateway>,
    queue: ReportQueue,
}

/// Wires a node gateway; streams end with `drain`.
pub fn mount(
    core: Arc<Core>,
    config: NodeConfig,
    (keyring, node_calls): (Arc<Keyring>, NodeCalls),
    metrics: Metrics,
    drain: CancellationToken,
) -> Mounted {
    let (reports, queue) = report_loop::channel();
    let gateway = NodeGateway {
        heartbeats: SharedHeartbeats::new(config.heartbeat_ttl),
        core,
        config,
        sessions: Sessions::default(),
        reports,
        metrics,
        introducing: Semaphore::new(MAX_INTRODUCTIONS),
        services: Arc::new(SharedIndex::default()),
        keyring,
        node_calls,
        drain,
    };
    Mounted {
        gateway: Arc::new(gateway),
        queue,
    }
}

impl Mounted {
    pub fn gateway(&self) -> &Arc<NodeGateway> {
        &self.gateway
    }

    /// Spawns the loops, which end with `stop`; `name` is the gateway's name for the
    /// cluster-controller.
    pub fn spawn_loops(self, loops: &mut JoinSet<()>, name: String, stop: &CancellationToken) {
        let gateway = self.gateway;
        let subscribed = gateway.core.replica.subscribe();
        let sessions = gateway.sessions.clone();
        loops.spawn(
            dispatch_loop::run(sessions, subscribed, stop.clone())
                .instrument(info_span!("dispatch_loop")),
        );
        let (core, metrics) = (Arc::clone(&gateway.core), gateway.metrics.clone());
        // Each batch has a trace of its own.
        loops.spawn(report_loop::run(core, metrics, self.queue, stop.clone()));
        let (core, index) = (Arc::clone(&gateway.core), Arc::clone(&gateway.services));
        let subscribed = core.replica.subscribe();
        loops.spawn(
            service_loop::run(index, core, subscribed, stop.clone())
                .instrument(info_span!("service_loop")),
        );
        let core = Arc::clone(&gateway.core);
        loops.spawn(services_loop::run(core, stop.clone()).instrument(info_span!("services_loop")));
        loops.spawn(
            detach_loop::run(Arc::clone(&gateway), stop.clone())
                .instrument(info_span!("detach_loop")),
        );
        let heartbeats = gateway.heartbeats.clone();
        let transport = gateway.config.transport.clone();
        let (core, metrics) = (Arc::clone(&gateway.core), gateway.metrics.clone());
        loops.spawn(
            liveness_loop::run(core, heartbeats, metrics, (name, transport), stop.clone())
                .instrument(info_span!("liveness_loop")),
        );
    }
}
