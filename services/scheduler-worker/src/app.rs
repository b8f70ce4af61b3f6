//! The whole wiring: what is built, what runs, how it ends.

use std::sync::Arc;

use service_host::{Base, Error, Rpcs};
use service_kit::{Clock, ConfigError, IdSource};
use tokio_util::sync::CancellationToken;

use crate::SERVICE;
use crate::config::Config;
use crate::metrics::Metrics;
use crate::peers::Leader;
use crate::session::Sessions;
use crate::work::Worker;

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
        if config.workers == 0 {
            return Err(Error::Config(ConfigError::Invalid {
                service: SERVICE.to_owned(),
                problem: "`workers` is 0: set it to 1 or more, or do not start this service"
                    .to_owned(),
            }));
        }
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

    /// Runs until drained, then finishes what is in hand.
    ///
    /// # Errors
    /// A server failed.
    pub async fn run(self, drain: CancellationToken) -> Result<(), Error> {
        let host = self.base.start();
        let metrics = host.metrics.register(Metrics::register);
        let replica = host.replica.clone();
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
            name: host.address().to_owned(),
            job_types: self.config.job_types.clone(),
            capacity: self.config.workers,
            ids,
        };
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
        host.run(Rpcs::default(), working, grace, drain.clone())
            .await
    }
}
