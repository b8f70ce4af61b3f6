//! Errors that keep the agent from starting or end it.

use std::path::PathBuf;

/// The reason why an agent does not start, or ends by itself. A setting is named as in the configuration
/// file.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Config(#[from] service_kit::ConfigError),
    #[error(transparent)]
    Serve(#[from] service_kit::server::ServeError),
    #[error("`gateways` is empty: name at least one, as in http://10.0.0.1:4646")]
    NoGateways,
    #[error("`{field}`: {problem}")]
    Setting { field: String, problem: String },
    #[error(transparent)]
    Fingerprint(#[from] fingerprint::Error),
    #[error(transparent)]
    LocalState(#[from] local_state::Error),
    #[error("the writer of the local state has ended")]
    LocalStateLost,
    #[error("the metrics server failed")]
    Metrics(#[source] std::io::Error),
    #[error(transparent)]
    Introduction(#[from] node_introduction::Error),
    #[error(transparent)]
    Tls(#[from] tls::Error),
    #[error("cannot read or write {path}")]
    File {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error("cannot read the bound address")]
    Address(#[source] std::io::Error),
}
