//! The whole wiring: what is built, what runs, how it ends.

use std::sync::Arc;

use service_kit::server::{ServeOptions, bind, serve};
use service_kit::{Clock, IdSource};
use store::{Client, ClientOptions, Replica, ReplicaMetrics, ReplicaOptions};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tonic::service::Routes;

use crate::SERVICE;
use crate::config::Config;
use crate::error::Error;
use crate::metrics::Metrics;
use crate::peers::Leader;
use crate::session::Sessions;
use crate::work::Worker;

/// The service, built and bound, not yet running.
pub struct App {
    config: Config,
    client: Client,
    grpc: TcpListener,
    metrics_http: TcpListener,
    address: String,
}

impl App {
    /// Binds the ports and prepares the connection to the store.
    ///
    /// # Errors
    /// A port is taken, or the configuration makes no sense.
    pub async fn build(config: Config) -> Result<Self, Error> {
        if config.workers == 0 {
            return Err(Error::NoWorkers);
        }
        let grpc = bind(config.listen.grpc).await?;
        let metrics_http = bind(config.listen.metrics).await?;
        let address = config
            .listen
            .advertised(grpc.local_addr().map_err(Error::Address)?)?;
        let options = ClientOptions {
            prefix: config.etcd.prefix.clone(),
            ..ClientOptions::default()
        };
        let client = Client::connect(&config.etcd.endpoints, options).await?;
        Ok(Self {
            config,
            client,
            grpc,
            metrics_http,
            address,
        })
    }

    /// Returns the address that it serves health at.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// # Errors
    /// The listener has no address.
    pub fn metrics_address(&self) -> std::io::Result<std::net::SocketAddr> {
        self.metrics_http.local_addr()
    }

    /// Runs until drained, then finishes what is in hand.
    ///
    /// # Errors
    /// A server failed.
    pub async fn run(self, drain: CancellationToken) -> Result<(), Error> {
        let registry = service_kit::Metrics::new(SERVICE);
        let metrics = registry.register(Metrics::register);
        let replica_options = ReplicaOptions {
            metrics: registry.register(ReplicaMetrics::register),
            ..ReplicaOptions::default()
        };
        // The replica outlives the drain: what is in hand still needs it.
        let ended = CancellationToken::new();
        let replica = Replica::start(self.client.clone(), replica_options, ended.clone());
        let ids = IdSource::from_os();
        let worker = Worker {
            replica: replica.clone(),
            applier: Leader::of("plan-applier", replica.clone()),
            clock: Clock::real(),
            ids: ids.clone(),
            metrics,
        };
        let sessions = Sessions {
            worker: Arc::new(worker),
            broker: Leader::of("eval-broker", replica.clone()),
            name: self.address.clone(),
            job_types: self.config.job_types.clone(),
            capacity: self.config.workers,
            ids,
        };
        let options = ServeOptions {
            service: SERVICE,
            rpc_services: &[],
            descriptors: proto::DESCRIPTORS,
            metrics: Some(registry.clone()),
            shutdown_grace_period: self.config.shutdown_grace_period,
        };
        registry.set_ready(true);
        let grace = self.config.shutdown_grace_period;
        let working = async {
            let given_up = async {
                drain.cancelled().await;
                tokio::time::sleep(grace).await;
            };
            // What is cut off here is delivered again.
            tokio::select! {
                () = sessions.run(drain.clone()) => {}
                () = given_up => {}
            }
        };
        let serving = serve(self.grpc, Routes::default(), options, drain.clone());
        let measuring = registry.serve(self.metrics_http, ended.clone());
        let serve_and_work = async {
            let (served, ()) = tokio::join!(serving, working);
            ended.cancel();
            served
        };
        let (served, measured) = tokio::join!(serve_and_work, measuring);
        served?;
        measured.map_err(Error::Metrics)
    }
}
