//! What a service over the store has around its own part: bound ports, a connection to etcd, a
//! replica, its RPCs with health and metrics, and, where one replica of the service leads, the
//! election.
//!
//! In reading order: [`Base`] is bound and does nothing yet; [`Base::start`] makes it a [`Host`],
//! whose replica follows the store; [`Host::run`] serves and works until drained. `readiness` says
//! meanwhile whether the service can do its work.

mod readiness;
#[cfg(test)]
mod tests;

pub use readiness::show as show_readiness;

use std::future::Future;
use std::net::SocketAddr;
use std::time::Duration;

use model::LeaderInfo;
use service_kit::server::{ServeError, ServeOptions, bind, serve};
use service_kit::{ConfigError, EtcdConfig, ListenConfig, Metrics};
use store::{
    Client, ClientOptions, ElectionMetrics, ElectionOptions, Leadership, Replica, ReplicaMetrics,
    ReplicaOptions, run_elected,
};
use tokio_util::sync::CancellationToken;
use tonic::service::Routes;

/// Why a service cannot run.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot make a client of the store")]
    Store(#[from] store::Error),
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Serve(#[from] ServeError),
    #[error("the metrics server failed")]
    Metrics(#[source] std::io::Error),
    #[error("cannot read the address that was bound")]
    Address(#[source] std::io::Error),
}

/// How long etcd may keep a leader that has fallen silent. Renewals take some round trips, which are
/// slow when it matters, so a lease below a second is lost to a hiccup; and nobody leads for as long
/// as the lease of a leader that died lasts.
const ELECTION_TTL: std::ops::RangeInclusive<Duration> =
    Duration::from_secs(1)..=Duration::from_secs(300);

/// Finds an `election_ttl` with which there is no leader, now or later.
///
/// # Errors
/// It is too short or too long; the error names the key and says what is wanted.
pub fn check_election_ttl(service: &str, ttl: Duration) -> Result<(), ConfigError> {
    if ELECTION_TTL.contains(&ttl) {
        return Ok(());
    }
    let ms = ttl.as_millis();
    Err(ConfigError::Invalid {
        service: service.to_owned(),
        problem: format!("`election_ttl` is {ms}ms: want 1s to 5m, as in 3s"),
    })
}

/// A service with its ports bound, which does nothing yet.
#[derive(Debug)]
pub struct Base {
    service: &'static str,
    client: Client,
    grpc: net::Listener,
    metrics_http: net::Listener,
    address: String,
}

impl Base {
    /// Binds the ports of `service` and prepares its connection to the store, which is made when
    /// first used.
    ///
    /// # Errors
    /// A port is taken, an endpoint is no URI, or nobody could reach the address that was bound.
    pub async fn build(
        service: &'static str,
        etcd: &EtcdConfig,
        listen: &ListenConfig,
    ) -> Result<Self, Error> {
        let grpc = bind(listen.grpc).await?;
        let metrics_http = bind(listen.metrics).await?;
        let address = listen.advertised(grpc.local_addr().map_err(Error::Address)?)?;
        let options = ClientOptions {
            prefix: etcd.prefix.clone(),
            ..ClientOptions::default()
        };
        let client = Client::connect(&etcd.endpoints, options).await?;
        Ok(Self {
            service,
            client,
            grpc,
            metrics_http,
            address,
        })
    }

    /// Returns the address that others reach its RPCs at, as in `http://10.0.0.7:7101`.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Returns where its metrics are shown.
    ///
    /// # Errors
    /// The listener has no address.
    pub fn metrics_address(&self) -> std::io::Result<SocketAddr> {
        self.metrics_http.local_addr()
    }

    /// Starts its replica. Nothing is served before [`Host::run`].
    pub fn start(self) -> Host {
        let metrics = Metrics::new(self.service);
        let options = ReplicaOptions {
            metrics: metrics.register(ReplicaMetrics::register),
            ..ReplicaOptions::default()
        };
        let ended = CancellationToken::new();
        let replica = Replica::start(self.client.clone(), options, ended.clone());
        Host {
            metrics,
            replica,
            base: self,
            ended,
        }
    }
}

/// A service whose replica follows the store. Dropping it stops the replica.
#[derive(Debug)]
pub struct Host {
    /// Everything that the service measures.
    pub metrics: Metrics,
    pub replica: Replica,
    base: Base,
    /// Ends the replica and the metrics. They outlive the drain: what is in hand still reads from
    /// the one, and is counted in the other.
    ended: CancellationToken,
}

/// The RPCs of a service.
#[derive(Debug, Default)]
pub struct Rpcs {
    pub routes: Routes,
    /// The full names of what is in the routes.
    pub names: &'static [&'static str],
}

impl Host {
    pub fn client(&self) -> &Client {
        &self.base.client
    }

    /// Returns the address that others reach its RPCs at.
    pub fn address(&self) -> &str {
        &self.base.address
    }

    /// Takes part in the service's election until drained, and leads with `lead` whenever it is
    /// won. The future that `lead` returns is dropped when the term is lost.
    pub fn elected<Lead, Leading>(
        &self,
        ttl: Duration,
        drain: CancellationToken,
        lead: Lead,
    ) -> impl Future<Output = ()> + use<Lead, Leading>
    where
        Lead: FnMut(Leadership) -> Leading,
        Leading: Future<Output = ()>,
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
        // Boxed: everything that a service does is in it.
        Box::pin(run_elected(
            options,
            self.replica.clone(),
            self.base.client.clone(),
            drain,
            lead,
        ))
    }

    /// Serves `rpcs`, health and metrics, and does `work`, which ends once drained; then ends.
    ///
    /// # Errors
    /// A server failed.
    pub async fn run(
        self,
        rpcs: Rpcs,
        work: impl Future<Output = ()>,
        shutdown_grace_period: Duration,
        drain: CancellationToken,
    ) -> Result<(), Error> {
        let _ended_on_return = self.ended.clone().drop_guard();
        let options = ServeOptions {
            service: self.base.service,
            rpc_services: rpcs.names,
            descriptors: proto::DESCRIPTORS,
            metrics: Some(self.metrics.clone()),
            shutdown_grace_period,
        };
        let serving = serve(self.base.grpc, rpcs.routes, options, drain);
        let measuring = self
            .metrics
            .clone()
            .serve(self.base.metrics_http, self.ended.clone());
        let ended = self.ended;
        let serve_and_work = async {
            let (served, ()) = tokio::join!(serving, work);
            ended.cancel();
            served
        };
        // Boxed: the store's client is in it.
        let showing = Box::pin(show_readiness(
            self.base.client.clone(),
            self.replica,
            self.metrics,
            ended.clone(),
        ));
        let (served, measured, ()) = tokio::join!(serve_and_work, measuring, showing);
        served?;
        measured.map_err(Error::Metrics)
    }
}
