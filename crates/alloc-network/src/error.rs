//! Errors of networks.

use std::io;
use std::path::PathBuf;

/// A failed operation on an allocation's network.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot run {program}")]
    Run {
        program: String,
        #[source]
        source: io::Error,
    },
    #[error("{program} did not end within {limit_s} s")]
    Timeout { program: String, limit_s: u64 },
    #[error("CNI plugin {plugin} failed at {command}: {message}")]
    Plugin {
        plugin: String,
        command: &'static str,
        message: String,
    },
    #[error("there is no CNI plugin {plugin:?} in {path}: install it, or correct network.cni_path")]
    NoPlugin { plugin: String, path: String },
    #[error("there is no network {name:?} in {}: add its file, or correct network.cni_config_dir", directory.display())]
    NoNetwork { name: String, directory: PathBuf },
    #[error("the result of the CNI plugins cannot be used: {0}")]
    Result(String),
    #[error("nft refuses the port mappings: {0}")]
    Nft(String),
    #[error("{what} {}", path.display())]
    Path {
        what: &'static str,
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("cannot make a network namespace: {what}")]
    Namespace {
        what: &'static str,
        #[source]
        source: io::Error,
    },
}
