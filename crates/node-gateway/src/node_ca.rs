//! The CA of nodes, read from files.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use pki::Authority;

/// The CA that issues the certificates of nodes.
#[derive(Clone, Debug)]
pub struct NodeCa {
    pub cert_file: PathBuf,
    pub key_file: PathBuf,
    /// Region of the nodes.
    pub region: String,
    /// Validity of a certificate.
    pub certificate_ttl: Duration,
}

/// The CA of nodes cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum NodeCaError {
    #[error("cannot read {path}, which `node_ca_cert_file` or `node_ca_key_file` names")]
    Read {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error(
        "`node_ca_cert_file` or `node_ca_key_file` cannot be used: want those that `kafila tls ca create \
         -node-ca` makes"
    )]
    Unusable(#[source] pki::Error),
}

impl NodeCa {
    /// Reads the CA. Read again for each certificate, so that replaced files count at once.
    ///
    /// # Errors
    /// A file cannot be read, or is none of a CA of nodes of the region.
    pub fn read(&self) -> Result<Authority, NodeCaError> {
        let read = |path: &PathBuf| {
            std::fs::read_to_string(path).map_err(|source| NodeCaError::Read {
                path: path.clone(),
                source,
            })
        };
        let (certificate, key) = (read(&self.cert_file)?, read(&self.key_file)?);
        Authority::read_for_nodes(&certificate, &key, &self.region).map_err(NodeCaError::Unusable)
    }
}
