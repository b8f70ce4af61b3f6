//! A fake gateway over a [`FakeState`]: lists, gets and blocks like the real one, and schedules nothing.

mod agent;
mod allocations;
mod deployments;
mod evaluations;
mod fake;
mod jobs;
mod namespaces;
mod node_pools;
mod nodes;
mod operator;
mod scaling_policies;
mod services;
mod variables;

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use proto::v1::agent_server::AgentServer;
use proto::v1::allocations_server::AllocationsServer;
use proto::v1::deployments_server::DeploymentsServer;
use proto::v1::evaluations_server::EvaluationsServer;
use proto::v1::jobs_server::JobsServer;
use proto::v1::namespaces_server::NamespacesServer;
use proto::v1::node_pools_server::NodePoolsServer;
use proto::v1::nodes_server::NodesServer;
use proto::v1::operator_server::OperatorServer;
use proto::v1::scaling_policies_server::ScalingPoliciesServer;
use proto::v1::services_server::ServicesServer;
use proto::v1::variables_server::VariablesServer;
use service_kit::CancellationToken;
use service_kit::server::ServeOptions;
use tokio::task::JoinHandle;
use tonic::service::Routes;

use self::fake::Fake;
use crate::state::FakeState;

/// A running gateway; dropping it stops it.
pub(crate) struct Gateway {
    pub(crate) address: String,
    socket: SocketAddr,
    state: Arc<Mutex<FakeState>>,
    metrics: service_kit::Metrics,
    stop: CancellationToken,
    server: JoinHandle<()>,
}

impl Gateway {
    pub(crate) async fn start(state: FakeState) -> Self {
        // Not the address range of `kafila dev`: a restart needs the same port again.
        let any = SocketAddr::from(([127, 0, 0, 2], 0));
        Self::start_at(any, Arc::new(Mutex::new(state))).await
    }

    async fn start_at(socket: SocketAddr, state: Arc<Mutex<FakeState>>) -> Self {
        let listener = service_kit::server::bind(socket).await.unwrap();
        let socket = listener.local_addr().unwrap();
        let fake = Fake(Arc::clone(&state));
        let routes = Routes::new(JobsServer::new(fake.clone()))
            .add_service(AgentServer::new(fake.clone()))
            .add_service(AllocationsServer::new(fake.clone()))
            .add_service(EvaluationsServer::new(fake.clone()))
            .add_service(DeploymentsServer::new(fake.clone()))
            .add_service(NodesServer::new(fake.clone()))
            .add_service(NamespacesServer::new(fake.clone()))
            .add_service(ScalingPoliciesServer::new(fake.clone()))
            .add_service(ServicesServer::new(fake.clone()))
            .add_service(VariablesServer::new(fake.clone()))
            .add_service(NodePoolsServer::new(fake.clone()))
            .add_service(OperatorServer::new(fake));
        let metrics = service_kit::Metrics::new("api-gateway");
        metrics.set_ready(true);
        let options = ServeOptions {
            service: "api-gateway",
            rpc_services: Vec::new(),
            descriptors: proto::DESCRIPTORS,
            metrics: Some(metrics.clone()),
            // Closes connections immediately, like a killed process.
            shutdown_grace_period: Duration::ZERO,
        };
        let stop = CancellationToken::new();
        let serving = service_kit::server::serve(listener, routes, options, stop.clone());
        Self {
            address: format!("http://{socket}"),
            socket,
            state,
            metrics,
            stop,
            server: tokio::spawn(async move { serving.await.unwrap() }),
        }
    }

    /// Kills the gateway, and restarts it at the same address after `while_away`.
    pub(crate) async fn restart(mut self, while_away: impl Future<Output = ()>) -> Self {
        let (socket, state) = (self.socket, Arc::clone(&self.state));
        self.stop.cancel();
        (&mut self.server).await.unwrap();
        while_away.await;
        Self::start_at(socket, state).await
    }

    /// Sets the answer to health checks.
    pub(crate) fn set_ready(&self, is_ready: bool) {
        self.metrics.set_ready(is_ready);
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, FakeState> {
        self.state.lock().unwrap()
    }

    /// Waits until `condition` holds.
    pub(crate) async fn wait_for(&self, what: &str, condition: impl Fn(&FakeState) -> bool) {
        let seen = async {
            while !condition(&self.state()) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(crate::command::TIMEOUT, seen)
            .await
            .expect(what);
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}
