//! The whole wiring: what is built, what runs, how it ends.

use service_host::{Base, Error, Rpcs};
use service_kit::Clock;
use tokio_util::sync::CancellationToken;
use tonic::service::Routes;

use crate::commit::Committer;
use crate::config::Config;
use crate::desk::Desk;
use crate::grpc::Grpc;
use crate::metrics::Metrics;
use crate::run::World;
use crate::{SERVICE, run};

/// The service, built and bound, not yet running.
pub struct App {
    config: Config,
    base: Base,
}

impl App {
    /// Binds the ports and prepares the connection to the store.
    ///
    /// # Errors
    /// A port is taken, or the configuration makes no sense.
    pub async fn build(config: Config) -> Result<Self, Error> {
        service_host::check_election_ttl(SERVICE, config.election_ttl)?;
        let base = Base::build(SERVICE, &config.etcd, &config.listen).await?;
        Ok(Self { config, base })
    }

    /// Returns the address that it takes plans at.
    pub fn address(&self) -> &str {
        self.base.address()
    }

    /// # Errors
    /// The listener has no address.
    pub fn metrics_address(&self) -> std::io::Result<std::net::SocketAddr> {
        self.base.metrics_address()
    }

    /// Runs until drained.
    ///
    /// # Errors
    /// A server failed.
    pub async fn run(self, drain: CancellationToken) -> Result<(), Error> {
        let host = self.base.start();
        let metrics = host.metrics.register(Metrics::register);
        let replica = host.replica.clone();
        let desk = Desk::default();
        let grpc = Grpc {
            desk: desk.clone(),
            replica: replica.clone(),
        };
        let routes = Routes::new(grpc.into_server());
        let client = host.client().clone();
        let lead = |leadership: store::Leadership| {
            let committer = Committer {
                writer: leadership.writer(&client),
                replica: replica.clone(),
                metrics: metrics.clone(),
                drain: drain.clone(),
            };
            let world = World {
                replica: replica.clone(),
                committer,
                clock: Clock::real(),
                verify_threads: self.config.verify_threads,
                bad_nodes: self.config.tracker(),
                metrics: metrics.clone(),
            };
            let revision = leadership.fence().create_revision;
            run::lead(world, desk.open(), revision, drain.clone())
        };
        let leading = host.elected(self.config.election_ttl, drain.clone(), lead);
        let rpcs = Rpcs {
            routes,
            names: &[proto::internal::v1::plan_applier_server::SERVICE_NAME],
        };
        let grace = self.config.shutdown_grace_period;
        host.run(rpcs, leading, grace, drain.clone()).await
    }
}
