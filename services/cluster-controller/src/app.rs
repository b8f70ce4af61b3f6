//! The whole wiring: what is built, what runs, how it ends.

use proto::internal::v1::liveness_server::{self, LivenessServer};
use proto::internal::v1::maintenance_server::{self, MaintenanceServer};
use service_host::{Base, Error, Rpcs};
use service_kit::{Clock, IdSource, SteadyClock};
use tokio_util::sync::CancellationToken;
use tonic::service::Routes;

use crate::config::Config;
use crate::garbage::Requests;
use crate::metrics::Metrics;
use crate::report::Reports;
use crate::world::World;
use crate::{SERVICE, deletions, drain as draining, garbage, grpc, periodic, run};

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

    /// Returns the address that others reach its RPCs at.
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
        let reports = Reports::default();
        let requests = Requests::default();
        let service = grpc::Service {
            reports: reports.clone(),
            requests: requests.clone(),
            replica: replica.clone(),
            metrics: metrics.clone(),
        };
        let routes = Routes::new(LivenessServer::new(service.clone()))
            .add_service(MaintenanceServer::new(service));
        let plan = garbage::Plan {
            interval: self.config.gc_interval,
            thresholds: self.config.thresholds(),
        };
        let liveness = upkeep::Config {
            heartbeat_ttl: self.config.heartbeat_ttl,
            heartbeat_grace: self.config.heartbeat_grace,
            takeover_grace: self.config.heartbeat_ttl,
            ..upkeep::Config::default()
        };
        let deletion_timeout = self.config.deletion_timeout;
        let (client, ids) = (host.client().clone(), IdSource::from_os());
        let lead = |leadership: store::Leadership| {
            let world = World {
                writer: leadership.writer(&client),
                replica: replica.clone(),
                clock: SteadyClock::start(Clock::real()),
                ids: ids.clone(),
                metrics: metrics.clone(),
                config: liveness.clone(),
                deposed: CancellationToken::new(),
            };
            let collecting =
                garbage::collect(world.clone(), plan.clone(), requests.open(), drain.clone());
            let emptying = draining::empty(world.clone(), drain.clone());
            let taking_back = deletions::take_back(world.clone(), deletion_timeout, drain.clone());
            let launching = periodic::launch(world.clone(), Clock::real(), drain.clone());
            let watching = run::lead(
                world,
                liveness.clone(),
                replica.clone(),
                reports.open(),
                drain.clone(),
            );
            async move {
                tokio::join!(watching, emptying, collecting, taking_back, launching);
            }
        };
        let leading = host.elected(self.config.election_ttl, drain.clone(), lead);
        let rpcs = Rpcs {
            routes,
            names: &[
                liveness_server::SERVICE_NAME,
                maintenance_server::SERVICE_NAME,
            ],
        };
        let grace = self.config.shutdown_grace_period;
        host.run(rpcs, leading, grace, drain.clone()).await
    }
}
