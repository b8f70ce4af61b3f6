//! Why the agent cannot run.

use std::path::PathBuf;

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
    #[error("cannot list the machine's network interfaces")]
    Interfaces(#[source] std::io::Error),
    #[error("{}: {what}", path.display())]
    Path {
        path: PathBuf,
        what: &'static str,
        #[source]
        source: std::io::Error,
    },
    #[error("{} does not hold an id; restore it, or remove it to make this a new node", path.display())]
    BadIdentity { path: PathBuf },
    #[error("another agent uses {}: stop it, or choose another `data_dir`", path.display())]
    DataDirInUse { path: PathBuf },
    #[error("cannot use the local state in {}", path.display())]
    LocalState {
        path: PathBuf,
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    #[error("the local state is not written any more")]
    LocalStateLost,
    #[error("the metrics server failed")]
    Metrics(#[source] std::io::Error),
    #[error("cannot read the address that was bound")]
    Address(#[source] std::io::Error),
    #[error("cannot start the thread that writes the local state")]
    Thread(#[source] std::io::Error),
}
