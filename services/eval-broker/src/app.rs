//! The whole wiring: what is built, what runs, how it ends.

use proto::internal::v1::eval_broker_server::EvalBrokerServer;
use service_host::{Base, Error, Rpcs};
use service_kit::{Clock, IdSource};
use tokio_util::sync::CancellationToken;
use tonic::service::Routes;

use crate::config::Config;
use crate::handle::Handle;
use crate::metrics::Metrics;
use crate::run::Term;
use crate::world::World;
use crate::writes::Writes;
use crate::{SERVICE, grpc, run};

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
        config.check()?;
        let base = Base::build(SERVICE, &config.etcd, &config.listen).await?;
        Ok(Self { config, base })
    }

    /// Returns the address that workers reach it at.
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
        let handle = Handle::default();
        let routes = Routes::new(EvalBrokerServer::new(grpc::Service {
            handle: handle.clone(),
            replica: replica.clone(),
        }));
        let broker = self.config.broker();
        let (client, ids) = (host.client().clone(), IdSource::from_os());
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
        let leading = host.elected(self.config.election_ttl, drain.clone(), lead);
        let rpcs = Rpcs {
            routes,
            names: &[proto::internal::v1::eval_broker_server::SERVICE_NAME],
        };
        let grace = self.config.shutdown_grace_period;
        host.run(rpcs, leading, grace, drain.clone()).await
    }
}
