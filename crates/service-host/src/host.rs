//! The environment of a service: bound ports, the connection to etcd, a replica, its RPCs with health
//! and metrics, and its election.

use std::net::SocketAddr;
use std::time::Duration;

use futures::future::BoxFuture;
use model::{LeaderInfo, ProcessInfo, ProcessKey};
use service_kit::server::{ServeOptions, bind_all, serve};
use service_kit::{EtcdConfig, Incoming, ListenConfig, Metrics, Transport};
use store::{
    Client, ElectionMetrics, ElectionOptions, Interest, Leadership, Replica, ReplicaMetrics,
    ReplicaOptions, keep_registered, run_elected,
};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tonic::service::Routes;

use crate::error::Error;
use crate::etcd::client_options;
use crate::readiness::{self, Readiness};

/// A service with its ports bound, not yet running.
#[derive(Debug)]
pub struct Base {
    service: &'static str,
    client: Client,
    grpc: connections::Listener,
    metrics_http: connections::Listener,
    address: String,
    transport: Transport,
    /// The certificates for etcd, to be reloaded.
    etcd_tls: Option<tls::Credentials>,
}

impl Base {
    /// Binds the ports of `service` and prepares its connection to the store, which connects on first
    /// use.
    ///
    /// # Errors
    /// A port is taken, an endpoint is no URI, or the bound address is unreachable for others.
    pub async fn build(
        service: &'static str,
        etcd: &EtcdConfig,
        listen: &ListenConfig,
    ) -> Result<Self, Error> {
        Self::build_with(service, etcd, listen, Transport::PLAINTEXT).await
    }

    /// As [`Self::build`]; connections of its RPCs use `transport`.
    ///
    /// # Errors
    /// Those of [`Self::build`], and a certificate for etcd that cannot be used.
    pub async fn build_with(
        service: &'static str,
        etcd: &EtcdConfig,
        listen: &ListenConfig,
        transport: Transport,
    ) -> Result<Self, Error> {
        let options = client_options(etcd)?;
        let (grpc, metrics_http) = bind_all(listen).await?;
        let bound = grpc.local_addr().map_err(Error::Address)?;
        let address = transport.advertised(listen, bound)?;
        let etcd_tls = options.tls.clone();
        let client = Client::connect(&etcd.endpoints, options).await?;
        Ok(Self {
            service,
            client,
            grpc,
            metrics_http,
            address,
            transport,
            etcd_tls,
        })
    }

    /// Returns the address that other processes reach its RPCs at, as in `http://10.0.0.7:7101`.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Returns the address of its metrics.
    ///
    /// # Errors
    /// The listener has no address.
    pub fn metrics_address(&self) -> std::io::Result<SocketAddr> {
        self.metrics_http.local_addr()
    }

    /// Starts its replica, which holds what is of `interest`. It serves nothing before [`Host::run`].
    pub fn start(self, interest: Interest) -> Host {
        let metrics = Metrics::new(self.service);
        let options = ReplicaOptions {
            metrics: metrics.register(ReplicaMetrics::register),
            interest,
            ..ReplicaOptions::default()
        };
        let ended = CancellationToken::new();
        let replica = Replica::start(self.client.clone(), options, ended.clone());
        Host {
            metrics,
            replica,
            base: self,
            condition: watch::Sender::new(true).subscribe(),
            ended,
        }
    }
}

/// A service whose replica follows the store. Dropping it stops the replica.
#[derive(Debug)]
pub struct Host {
    /// The metrics of the service.
    pub metrics: Metrics,
    pub replica: Replica,
    base: Base,
    /// See [`Self::ready_when`].
    condition: watch::Receiver<bool>,
    /// Ends the replica and the metrics. They outlive the drain: work that is finished then still
    /// uses them.
    ended: CancellationToken,
}

/// The RPCs of a service.
#[derive(Debug, Default)]
pub struct Rpcs {
    pub routes: Routes,
    /// The full names of the gRPC services in the routes.
    pub names: Vec<&'static str>,
}

impl Rpcs {
    /// Adds the RPCs on the log of the process, unless the service has them itself.
    fn with_agent(self, drain: &CancellationToken) -> Self {
        if self.names.contains(&process_log::SERVICE_NAME) {
            return self;
        }
        let agent = process_log::ProcessLog::new(drain.clone()).into_server();
        let own = self.names.iter().copied();
        Self {
            routes: self.routes.add_service(agent),
            names: own.chain([process_log::SERVICE_NAME]).collect(),
        }
    }
}

impl Host {
    pub fn client(&self) -> &Client {
        &self.base.client
    }

    /// Returns the address that other processes reach its RPCs at.
    pub fn address(&self) -> &str {
        &self.base.address
    }

    /// Returns the address of its metrics.
    ///
    /// # Errors
    /// The listener has no address.
    pub fn metrics_address(&self) -> std::io::Result<SocketAddr> {
        self.base.metrics_address()
    }

    /// Returns the way to other services.
    pub fn transport(&self) -> &Transport {
        &self.base.transport
    }

    /// Campaigns in the service's election until drained, and runs `lead` for each term that it wins.
    /// The future that `lead` returns is dropped when the term is lost.
    pub fn elected<'a, Lead, Leading>(
        &self,
        ttl: Duration,
        drain: CancellationToken,
        lead: Lead,
    ) -> BoxFuture<'a, ()>
    where
        Lead: FnMut(Leadership) -> Leading + Send + 'a,
        Leading: Future<Output = ()> + Send + 'a,
    {
        let info = LeaderInfo {
            address: self.base.address.clone(),
            replica: self.base.address.clone(),
        };
        let options = ElectionOptions {
            ttl,
            metrics: self.metrics.register(ElectionMetrics::register),
            ..ElectionOptions::new(self.base.service, info)
        };
        run_elected(
            options,
            self.replica.clone(),
            self.base.client.clone(),
            drain,
            lead,
        )
    }

    /// Makes `condition` a condition of readiness, besides the store's. Once true it stays so.
    pub fn ready_when(&mut self, condition: watch::Receiver<bool>) {
        self.condition = condition;
    }

    /// Returns the token of the replica's end. Loops of [`Self::run_with_loops`] end with it.
    pub fn ended(&self) -> &CancellationToken {
        &self.ended
    }

    /// Serves `rpcs`, health and metrics, and runs `work`, which ends once drained.
    ///
    /// # Errors
    /// A server failed.
    pub fn run(
        self,
        rpcs: Rpcs,
        work: BoxFuture<'_, ()>,
        shutdown_grace_period: Duration,
        drain: CancellationToken,
    ) -> BoxFuture<'_, Result<(), Error>> {
        // Boxed here, so that the servers are compiled in this crate and not in every service.
        Box::pin(async move {
            let (servers, serving) = self.servers(rpcs, shutdown_grace_period, drain);
            let serving_and_working = async { tokio::join!(serving, work).0 };
            servers.run_until(serving_and_working).await
        })
    }

    /// Serves `rpcs`, health and metrics until drained. The `loops` go on until the open RPCs, which
    /// need them, are finished; then [`Self::ended`] ends them.
    ///
    /// # Errors
    /// A server failed, or a loop ended by itself.
    pub fn run_with_loops(
        self,
        rpcs: Rpcs,
        mut loops: JoinSet<()>,
        shutdown_grace_period: Duration,
        drain: CancellationToken,
    ) -> BoxFuture<'static, Result<(), Error>> {
        Box::pin(async move {
            let service = self.base.service;
            let ended = self.ended.clone();
            let (servers, serving) = self.servers(rpcs, shutdown_grace_period, drain);
            let serving_then_ending_loops = async {
                tokio::select! {
                    served = serving => served?,
                    Some(_) = loops.join_next() => return Err(Error::LoopEnded { service }),
                }
                ended.cancel();
                while loops.join_next().await.is_some() {}
                Ok(())
            };
            servers.run_until(serving_then_ending_loops).await
        })
    }

    /// Returns the metrics and readiness, and the RPC server, neither of which runs yet.
    fn servers(
        self,
        rpcs: Rpcs,
        shutdown_grace_period: Duration,
        drain: CancellationToken,
    ) -> (Servers, BoxFuture<'static, Result<(), Error>>) {
        let rpcs = rpcs.with_agent(&drain);
        let options = ServeOptions {
            service: self.base.service,
            rpc_services: rpcs.names,
            descriptors: proto::DESCRIPTORS,
            metrics: Some(self.metrics.clone()),
            shutdown_grace_period,
        };
        let incoming = Incoming::new(self.base.grpc, self.base.transport.clone());
        let serving = serve(incoming, rpcs.routes, options, drain);
        let servers = Servers {
            client: self.base.client,
            transport: self.base.transport,
            etcd_tls: self.base.etcd_tls,
            replica: self.replica,
            metrics: self.metrics,
            metrics_http: self.base.metrics_http,
            process: ProcessKey {
                service: self.base.service.to_owned(),
                address: self.base.address,
            },
            condition: self.condition,
            ended: self.ended,
        };
        (servers, Box::pin(async { Ok(serving.await?) }))
    }
}

/// The tasks that accompany the RPC server.
struct Servers {
    client: Client,
    transport: Transport,
    etcd_tls: Option<tls::Credentials>,
    replica: Replica,
    metrics: Metrics,
    metrics_http: connections::Listener,
    process: ProcessKey,
    condition: watch::Receiver<bool>,
    ended: CancellationToken,
}

impl Servers {
    /// Serves metrics, publishes readiness and keeps the process registered until `served`, which is the RPC
    /// server and the work of the service, ends.
    async fn run_until(self, served: impl Future<Output = Result<(), Error>>) -> Result<(), Error> {
        let _ended_on_return = self.ended.clone().drop_guard();
        let measuring = self
            .metrics
            .clone()
            .serve(self.metrics_http, self.ended.clone());
        let ended = self.ended.clone();
        let served_then_ended = async {
            let result = served.await;
            ended.cancel();
            result
        };
        let refreshing =
            self.transport
                .keep_fresh(self.etcd_tls, self.metrics.clone(), self.ended.clone());
        let info = ProcessInfo {
            version: service_kit::version(),
        };
        let (client, ended) = (self.client.clone(), self.ended.clone());
        let registered = keep_registered(client, self.process, info, ended);
        let readiness = Readiness {
            client: self.client,
            replica: self.replica,
            metrics: self.metrics,
            condition: self.condition,
        };
        let showing = Box::pin(readiness::show(readiness, self.ended));
        let (result, measured, (), (), ()) = tokio::join!(
            served_then_ended,
            measuring,
            showing,
            refreshing,
            registered
        );
        result?;
        measured.map_err(Error::Metrics)
    }
}
