//! The whole wiring: from a [`Config`] to a gateway that runs until drained.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use service_host::show_readiness;
use service_kit::config::ConfigError;
use service_kit::server::{self, ServeError, ServeOptions};
use service_kit::{CancellationToken, Clock, IdSource};
use store::{Client, ClientOptions, Replica, ReplicaMetrics, ReplicaOptions};
use tokio::task::JoinSet;
use tracing::{Instrument as _, info, info_span};

use crate::config::Config;
use crate::events::Streams;
use crate::gateway::{Gateway, Shared};
use crate::grpc;
use crate::metrics::Metrics;
use crate::nodes::liveness::Heard;
use crate::nodes::sessions::Sessions;
use crate::nodes::{dispatch_loop, liveness_loop, report_loop};
use crate::reads::blocking::TableChanges;
use crate::reads::freshness::Revisions;
use crate::turns::Turns;

/// The name of the service, in metrics, spans and configuration.
pub const SERVICE: &str = "api-gateway";

#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    #[error("cannot make a client of the store")]
    Store(#[from] store::Error),
    #[error(transparent)]
    Listen(#[from] ServeError),
    #[error("cannot read the address that was bound")]
    Address(#[source] io::Error),
    #[error(transparent)]
    Config(#[from] ConfigError),
}

#[derive(Debug, thiserror::Error)]
pub enum RunError {
    #[error("the RPC server ended")]
    Rpc(#[from] ServeError),
    #[error("the metrics server ended")]
    Metrics(#[from] io::Error),
    /// The process must start anew: without its loops a gateway looks alive and is not.
    #[error("a loop of the gateway ended by itself")]
    LoopEnded,
}

/// A gateway with its ports bound and its loops not yet running.
#[derive(Debug)]
pub struct App {
    config: Config,
    client: Client,
    clock: Clock,
    ids: IdSource,
    rpc: net::Listener,
    metrics_http: net::Listener,
    rpc_address: SocketAddr,
    metrics_address: SocketAddr,
    /// What others reach it at.
    advertised: String,
}

impl App {
    /// Connects to the configured etcd when first used, and binds the ports.
    ///
    /// # Errors
    /// An endpoint is not a URI, a port is taken, the configuration makes no sense.
    pub async fn build(config: Config) -> Result<Self, BuildError> {
        let options = ClientOptions {
            prefix: config.etcd.prefix.clone(),
            ..ClientOptions::default()
        };
        let client = Client::connect(&config.etcd.endpoints, options).await?;
        Self::build_on(config, client, Clock::real(), IdSource::from_os()).await
    }

    /// Binds the ports of a gateway over a store that is at hand.
    ///
    /// # Errors
    /// A port is taken, the configuration makes no sense.
    pub async fn build_on(
        config: Config,
        client: Client,
        clock: Clock,
        ids: IdSource,
    ) -> Result<Self, BuildError> {
        let rpc = server::bind(config.listen.grpc).await?;
        let metrics_http = server::bind(config.listen.metrics).await?;
        let rpc_address = rpc.local_addr().map_err(BuildError::Address)?;
        let metrics_address = metrics_http.local_addr().map_err(BuildError::Address)?;
        let advertised = config.listen.advertised(rpc_address)?;
        Ok(Self {
            config,
            client,
            clock,
            ids,
            rpc,
            metrics_http,
            rpc_address,
            metrics_address,
            advertised,
        })
    }

    /// Returns where RPCs are answered.
    pub fn rpc_address(&self) -> SocketAddr {
        self.rpc_address
    }

    /// Returns where metrics are shown.
    pub fn metrics_address(&self) -> SocketAddr {
        self.metrics_address
    }

    /// Returns what others are told to call, as in `http://127.0.0.1:7101`.
    pub fn address(&self) -> &str {
        &self.advertised
    }

    /// Serves until drained: then streams and blocked reads end, RPCs in hand are finished, what
    /// nodes have reported is stored, and the loops stop.
    ///
    /// # Errors
    /// A server broke.
    pub async fn run(self, drain: CancellationToken) -> Result<(), RunError> {
        let exposed = service_kit::Metrics::new(SERVICE);
        // The loops outlive the drain: RPCs in hand need them.
        let stop = CancellationToken::new();
        let _stop_on_return = stop.clone().drop_guard();
        let (gateway, queue) = self.gateway(&exposed, &drain, &stop);
        let mut loops = spawn_loops(&gateway, queue, self.name(), &stop);
        let options = ServeOptions {
            service: SERVICE,
            rpc_services: &grpc::RPC_SERVICES,
            descriptors: proto::DESCRIPTORS,
            metrics: Some(exposed.clone()),
            shutdown_grace_period: self.config.shutdown_grace_period,
        };
        info!(address = self.advertised, metrics = %self.metrics_address, "gateway listens");
        tokio::spawn(show_readiness(
            self.client.clone(),
            gateway.replica.clone(),
            exposed.clone(),
            stop.clone(),
        ));
        let metrics = exposed.serve(self.metrics_http, stop.clone());
        let rpc = server::serve(self.rpc, grpc::routes(gateway), options, drain);
        let metrics = tokio::spawn(metrics);
        tokio::select! {
            served = rpc => served?,
            Some(_) = loops.join_next() => return Err(RunError::LoopEnded),
        }
        stop.cancel();
        while loops.join_next().await.is_some() {}
        metrics.await.unwrap_or(Ok(()))?;
        Ok(())
    }

    fn name(&self) -> String {
        if self.config.name.is_empty() {
            self.advertised.clone()
        } else {
            self.config.name.clone()
        }
    }

    fn gateway(
        &self,
        exposed: &service_kit::Metrics,
        drain: &CancellationToken,
        stop: &CancellationToken,
    ) -> (Shared, report_loop::ReportQueue) {
        let metrics = exposed.register(Metrics::register);
        let options = ReplicaOptions {
            metrics: exposed.register(ReplicaMetrics::register),
            ..ReplicaOptions::default()
        };
        let replica = Replica::start(self.client.clone(), options, stop.clone());
        let (reports, queue) = report_loop::channel();
        let gateways = if self.config.gateways.is_empty() {
            vec![self.advertised.clone()]
        } else {
            self.config.gateways.clone()
        };
        let gateway = Arc::new(Gateway {
            gateways,
            client: self.client.clone(),
            writer: self.client.unfenced_writer(),
            revisions: Revisions::start(self.client.clone(), metrics.clone(), stop.clone()),
            tables: TableChanges::default(),
            sessions: Sessions::default(),
            heard: Mutex::new(Heard::new(self.config.heartbeat_ttl)),
            reports,
            clock: self.clock.clone(),
            ids: self.ids.clone(),
            metrics,
            drain: drain.clone(),
            dry_runs: Turns::for_this_machine(),
            streams: Streams::default(),
            replica,
            config: self.config.clone(),
        });
        (gateway, queue)
    }
}

fn spawn_loops(
    gateway: &Shared,
    queue: report_loop::ReportQueue,
    name: String,
    stop: &CancellationToken,
) -> JoinSet<()> {
    let mut loops = JoinSet::new();
    let subscribed = gateway.replica.subscribe();
    loops.spawn(
        dispatch_loop::run(Arc::clone(gateway), subscribed, stop.clone())
            .instrument(info_span!("dispatch_loop")),
    );
    // Each batch is a trace of its own.
    loops.spawn(report_loop::run(Arc::clone(gateway), queue, stop.clone()));
    loops.spawn(
        liveness_loop::run(Arc::clone(gateway), name, stop.clone())
            .instrument(info_span!("liveness_loop")),
    );
    loops
}
