//! Snapshot files of etcd, as `Maintenance.Snapshot` sends them: a bolt database and its SHA-256.
//!
//! In reading order: [`checksum`] verifies a file; [`bolt`] reads the pages of the database, and
//! [`contents`] counts their objects. Nothing is written: `etcdutl` restores snapshots.
//!
//! Source: the file formats of etcd 3.5 (`server/storage/schema`) and of bbolt.

pub mod bolt;
pub mod checksum;
pub mod contents;

pub use checksum::{CHECKSUM_BYTES, Checksum};
pub use contents::{Contents, Table};

/// The reason why a file is no complete snapshot.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    #[error("cannot read the file")]
    Read(#[from] std::io::Error),
    #[error(
        "the file has no checksum at its end: it was copied from a data directory, or its end is missing"
    )]
    NoChecksum,
    #[error(
        "the checksum at the end of the file does not match: the file is incomplete or damaged"
    )]
    ChecksumMismatch,
    #[error("the file is not an etcd database: {0}")]
    Invalid(&'static str),
}
