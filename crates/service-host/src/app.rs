//! A service from its configuration to its end: build, run, drain.

use std::net::SocketAddr;
use std::path::Path;
use std::pin::Pin;

use service_kit::{ConfigError, Transport};
use state::Table;
use store::Interest;
use tokio_util::sync::CancellationToken;

use crate::config::ServiceConfig;
use crate::error::Error;
use crate::host::{Base, Host};
use crate::role::role_of;

/// The future of a running service, boxed: everything that the service does is in it.
pub type Running = Pin<Box<dyn Future<Output = Result<(), Error>> + Send>>;

/// The part of a service that differs from the others.
pub trait Service {
    /// The name that it is elected, configured and measured under.
    const NAME: &'static str;

    /// The part of the store that its replica holds. Only gateways show service registrations, processes
    /// and events of tasks, and only they refuse revoked nodes and sign tokens of tasks.
    const INTEREST: Interest = Interest {
        without: &[
            Table::Services,
            Table::NodeRevocations,
            Table::Processes,
            Table::Keyring,
        ],
        task_texts: false,
    };

    type Config: ServiceConfig;

    /// Rejects settings with which the service cannot work.
    ///
    /// # Errors
    /// The first wrong setting.
    fn check(config: &Self::Config) -> Result<(), ConfigError>;

    /// Returns the file of the CA of nodes, whose certificates a gateway accepts beside those of
    /// `tls.ca_file`, with callers without a certificate; `None`: neither.
    fn node_ca(_: &Self::Config) -> Option<&Path> {
        None
    }

    /// Runs on `host` until drained.
    fn run(config: Self::Config, host: Host, drain: CancellationToken) -> Running;
}

/// A service, built and bound, not yet running.
#[derive(Debug)]
pub struct App<S: Service> {
    config: S::Config,
    base: Base,
}

impl<S: Service> App<S> {
    /// Binds the ports and prepares the connection to the store.
    ///
    /// # Errors
    /// A port is taken, or a setting is invalid.
    pub async fn build(config: S::Config) -> Result<Self, Error> {
        S::check(&config)?;
        let transport = match role_of(S::NAME) {
            Some(role) => {
                let in_plaintext = config.etcd().check_plaintext(config.tls());
                in_plaintext.map_err(|problem| ConfigError::Invalid {
                    service: S::NAME.to_owned(),
                    problem,
                })?;
                let node_ca = S::node_ca(&config);
                Transport::open_with(config.tls(), config.listen(), role, node_ca)?
            }
            None => Transport::PLAINTEXT,
        };
        let base = Base::build_with(S::NAME, config.etcd(), config.listen(), transport).await?;
        Ok(Self { config, base })
    }

    /// Returns the address that other processes reach its RPCs at.
    pub fn address(&self) -> &str {
        self.base.address()
    }

    /// # Errors
    /// The listener has no address.
    pub fn metrics_address(&self) -> std::io::Result<SocketAddr> {
        self.base.metrics_address()
    }

    /// Runs until drained, then finishes started work.
    ///
    /// # Errors
    /// A server failed.
    pub async fn run(self, drain: CancellationToken) -> Result<(), Error> {
        let host = self.base.start(S::INTEREST);
        if self.config.telemetry().nomad_metric_names {
            host.metrics.serve_nomad_names(Vec::new());
        }
        S::run(self.config, host, drain).await
    }
}
