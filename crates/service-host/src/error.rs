//! Errors that keep a service from running.

use service_kit::ConfigError;
use service_kit::server::ServeError;

/// A service cannot run.
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
    /// The process has to restart: without its loops, a service looks alive and is not.
    #[error("a loop of {service} ended by itself")]
    LoopEnded { service: &'static str },
}
