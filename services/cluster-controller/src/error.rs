//! Why the service cannot run.

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot reach the store")]
    Store(#[from] store::Error),
    #[error(transparent)]
    Config(#[from] service_kit::ConfigError),
    #[error(transparent)]
    Serve(#[from] service_kit::server::ServeError),
    #[error("the metrics server failed")]
    Metrics(#[source] std::io::Error),
    #[error("cannot read the address that was bound")]
    Address(#[source] std::io::Error),
}
