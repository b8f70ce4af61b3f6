//! Failures to open a node's storage, and to use its certificate.

use std::path::PathBuf;

use model::NodeId;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{}: {what}", path.display())]
    Path {
        path: PathBuf,
        what: &'static str,
        #[source]
        source: std::io::Error,
    },
    #[error("{} cannot be used", path.display())]
    Certificate {
        path: PathBuf,
        #[source]
        source: pki::Error,
    },
    #[error("{} does not hold an id: restore it, or remove it to make this a new node", path.display())]
    BadIdentity { path: PathBuf },
    #[error(
        "{} says that this is node {node_id}, and the certificate in {} is for node {certified}: \
         set `tls.cert_file` to the certificate of {node_id}, or remove the data directory to make \
         this node {certified}",
        id_file.display(),
        cert_file.display()
    )]
    ForeignCertificate {
        id_file: PathBuf,
        node_id: NodeId,
        cert_file: PathBuf,
        certified: NodeId,
    },
    #[error("another agent uses {}: stop it, or choose another `data_dir`", path.display())]
    DataDirInUse { path: PathBuf },
    #[error("cannot use the local state in {}", path.display())]
    Database {
        path: PathBuf,
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    #[error("cannot start the thread that writes the local state")]
    Thread(#[source] std::io::Error),
}
