//! The whole wiring: what is built, what runs, how it ends.

use model::LeaderInfo;
use proto::internal::v1::eval_broker_server::EvalBrokerServer;
use service_kit::server::{ServeOptions, bind, serve};
use service_kit::{Clock, IdSource};
use store::{
    Client, ClientOptions, ElectionMetrics, ElectionOptions, Replica, ReplicaMetrics,
    ReplicaOptions, run_elected,
};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tonic::service::Routes;

use crate::config::Config;
use crate::error::Error;
use crate::handle::Handle;
use crate::metrics::Metrics;
use crate::run::Term;
use crate::world::World;
use crate::writes::Writes;
use crate::{SERVICE, grpc, run};

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

    /// Returns the address that workers reach it at.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// # Errors
    /// The listener has no address.
    pub fn metrics_address(&self) -> std::io::Result<std::net::SocketAddr> {
        self.metrics_http.local_addr()
    }

    /// Runs until drained.
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
        // The replica outlives the drain: what is in hand still reads from it.
        let ended = CancellationToken::new();
        let replica = Replica::start(self.client.clone(), replica_options, ended.clone());
        let options = ServeOptions {
            service: SERVICE,
            rpc_services: &[proto::internal::v1::eval_broker_server::SERVICE_NAME],
            descriptors: proto::DESCRIPTORS,
            metrics: Some(registry.clone()),
            shutdown_grace_period: self.config.shutdown_grace_period,
        };
        let election = ElectionOptions {
            ttl: self.config.election_ttl,
            metrics: registry.register(ElectionMetrics::register),
            ..ElectionOptions::new(
                SERVICE,
                LeaderInfo {
                    address: self.address.clone(),
                    replica: self.address.clone(),
                },
            )
        };
        registry.set_ready(true);
        let handle = Handle::default();
        let routes = Routes::new(EvalBrokerServer::new(grpc::Service {
            handle: handle.clone(),
            replica: replica.clone(),
        }));
        let serving = serve(self.grpc, routes, options, drain.clone());
        let measuring = registry.serve(self.metrics_http, ended.clone());
        let broker = self.config.broker();
        let (client, ids) = (self.client.clone(), IdSource::from_os());
        let lead = |leadership: store::Leadership| {
            let writes = Writes::new(
                leadership.writer(&client),
                replica.clone(),
                ids.clone(),
                broker.delivery_limit,
                metrics.clone(),
            );
            let term = Term {
                world: World::new(
                    writes,
                    replica.clone(),
                    metrics.clone(),
                    broker.nack_timeout,
                ),
                leadership,
                config: broker.clone(),
                seed: ids.next_u64(),
                replica: replica.clone(),
                clock: Clock::real(),
                metrics: metrics.clone(),
                inbox: handle.open(),
            };
            run::lead(term, drain.clone())
        };
        let leading = run_elected(
            election,
            replica.clone(),
            self.client.clone(),
            drain.clone(),
            lead,
        );
        let serve_and_lead = async {
            let (served, ()) = tokio::join!(serving, leading);
            ended.cancel();
            served
        };
        let (served, measured) = tokio::join!(serve_and_lead, measuring);
        served?;
        measured.map_err(Error::Metrics)
    }
}
