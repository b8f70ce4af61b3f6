//! The whole wiring: what is built, what runs, how it ends.

use service_host::{Base, Error, Rpcs};
use service_kit::{Clock, IdSource};
use tokio_util::sync::CancellationToken;

use crate::config::Config;
use crate::metrics::Metrics;
use crate::world::World;
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

    /// Returns the address that it serves health at.
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
        let rollout = rollout::Config {
            health_window: self.config.health_window,
        };
        let (client, ids) = (host.client().clone(), IdSource::from_os());
        let lead = |leadership: store::Leadership| {
            let world = World {
                writer: leadership.writer(&client),
                replica: replica.clone(),
                clock: Clock::real(),
                ids: ids.clone(),
                metrics: metrics.clone(),
            };
            run::lead(world, rollout.clone(), replica.clone(), drain.clone())
        };
        let leading = host.elected(self.config.election_ttl, drain.clone(), lead);
        let grace = self.config.shutdown_grace_period;
        host.run(Rpcs::default(), leading, grace, drain.clone())
            .await
    }
}
