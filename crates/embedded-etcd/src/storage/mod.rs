//! Where changes are kept: nowhere, or in a file. The seam between the pure store and the disk.

pub mod codec;
mod disk;

use std::{net::SocketAddr, sync::Arc};

pub use self::disk::Disk;
use crate::{
    error::Error,
    record::{Record, Revision},
};

/// One thing to store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// A new version of a key.
    Write(Arc<Record>),
    /// The store is compacted at `revision`; records are dropped one by one after it.
    Compact { revision: i64 },
    /// Nobody can ask for this record any more.
    Drop(Revision),
    /// A lease of `ttl` seconds.
    Grant { id: i64, ttl: i64 },
    /// The end of a lease.
    Revoke { id: i64 },
}

/// All that was stored, checked piece by piece.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contents {
    /// In revision order.
    pub records: Vec<Record>,
    /// Id and seconds.
    pub leases: Vec<(i64, i64)>,
    /// [`crate::mvcc::NEVER_COMPACTED`] if it never was.
    pub compact_revision: i64,
    /// How often the store has been opened, this time included.
    pub opened: u64,
}

/// Stores changes.
#[derive(Clone, Debug)]
pub enum Backend {
    Memory,
    Disk(Arc<Disk>),
    /// What a simulation has for a disk.
    Journal(Arc<dyn Journal>),
    /// A disk that does as a test says.
    #[cfg(test)]
    Scripted(Scripted),
}

/// A disk that a simulation has in its hands: what it takes, how long that takes, and what of it is
/// there after a crash.
pub trait Journal: std::fmt::Debug + Send + Sync {
    /// Reads everything that was committed, and counts the opening.
    fn open(&self) -> Contents;

    /// Hears who asked for the txn that is going to be `revision`; `None`: somebody in process.
    fn note_writer(&self, peer: Option<SocketAddr>, revision: i64);

    /// Stores `changes`, all or none. Dropped before it is done, either may be.
    fn commit(&self, changes: Vec<Change>) -> net::BoxFuture<Result<(), Error>>;
}

/// What a commit does in a test.
#[cfg(test)]
#[derive(Clone)]
pub struct Scripted(pub Arc<dyn Fn(Vec<Change>) -> ScriptedCommit + Send + Sync>);

#[cfg(test)]
pub type ScriptedCommit = std::pin::Pin<Box<dyn Future<Output = Result<(), Error>> + Send>>;

#[cfg(test)]
impl std::fmt::Debug for Scripted {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Scripted")
    }
}

impl Backend {
    /// Stores `changes`, all or none. On return of an error none may be assumed.
    ///
    /// # Errors
    /// [`Error::Storage`].
    pub async fn commit(&self, changes: Vec<Change>) -> Result<(), Error> {
        match self {
            Self::Memory => Ok(()),
            Self::Disk(disk) => {
                let disk = Arc::clone(disk);
                run_blocking(move || disk.commit(&changes)).await
            }
            Self::Journal(journal) => journal.commit(changes).await,
            #[cfg(test)]
            Self::Scripted(Scripted(commit)) => commit(changes).await,
        }
    }

    /// Makes sure that everything committed so far survives a crash.
    ///
    /// # Errors
    /// [`Error::Storage`].
    pub async fn flush(&self) -> Result<(), Error> {
        match self {
            Self::Memory | Self::Journal(_) => Ok(()),
            Self::Disk(disk) => {
                let disk = Arc::clone(disk);
                run_blocking(move || disk.flush()).await
            }
            #[cfg(test)]
            Self::Scripted(_) => Ok(()),
        }
    }

    /// Whether committed changes wait for [`Backend::flush`].
    #[must_use]
    pub fn needs_flush(&self) -> bool {
        match self {
            Self::Memory | Self::Journal(_) => false,
            Self::Disk(disk) => disk.needs_flush(),
            #[cfg(test)]
            Self::Scripted(_) => false,
        }
    }

    /// Bytes the store takes on disk.
    #[must_use]
    pub fn size(&self) -> Option<u64> {
        match self {
            Self::Memory | Self::Journal(_) => None,
            Self::Disk(disk) => disk.size(),
            #[cfg(test)]
            Self::Scripted(_) => None,
        }
    }
}

async fn run_blocking(
    work: impl FnOnce() -> Result<(), Error> + Send + 'static,
) -> Result<(), Error> {
    match offload::spawn(work).await {
        Ok(result) => result,
        Err(error) => Err(Error::Failed(error.to_string())),
    }
}
