//! Errors of certificates and keys in files.

use std::io;
use std::path::{Path, PathBuf};

/// A file cannot be used. Each message names the file.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot read {path}")]
    Read {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("{path} contains no {wanted} in PEM form")]
    Empty { path: PathBuf, wanted: &'static str },
    #[error("{path} is not valid PEM: {problem}")]
    Pem { path: PathBuf, problem: String },
    #[error("{path} contains a certificate that cannot be used: {problem}")]
    Certificate { path: PathBuf, problem: String },
    #[error(
        "the certificate in {path} expired at {expired_at}: create a new one with `kafila tls cert create`"
    )]
    Expired { path: PathBuf, expired_at: String },
    #[error("the key in {key} does not belong to the certificate in {cert}, or cannot be used")]
    KeyPair {
        cert: PathBuf,
        key: PathBuf,
        #[source]
        source: rustls::Error,
    },
    #[error(
        "every peer would refuse the certificate in {cert}, because the CA in {ca} does not verify it: \
         {problem}. Create one with that CA and `kafila tls cert create`, or name the CA that has \
         issued it"
    )]
    Issuer {
        cert: PathBuf,
        ca: PathBuf,
        problem: String,
    },
    #[error("the system has no certificate authorities: name a file with them")]
    NoSystemRoots,
    #[error("TLS cannot be set up")]
    Setup(#[source] rustls::Error),
}

impl Error {
    /// Returns the files that the error names.
    pub fn paths(&self) -> Vec<&Path> {
        match self {
            Self::Read { path, .. }
            | Self::Empty { path, .. }
            | Self::Pem { path, .. }
            | Self::Certificate { path, .. }
            | Self::Expired { path, .. } => vec![path],
            Self::KeyPair { cert, key, .. } => vec![cert, key],
            Self::Issuer { cert, ca, .. } => vec![cert, ca],
            Self::NoSystemRoots | Self::Setup(_) => Vec::new(),
        }
    }
}
