//! Storage backends of changes, none or a file: the interface between the pure store and the disk.

mod change;
pub mod codec;
mod disk;

use std::{net::SocketAddr, sync::Arc};

pub use self::{
    change::{Change, Contents},
    disk::Disk,
};
use crate::error::Error;

/// Stores changes.
#[derive(Clone, Debug)]
pub enum Backend {
    Memory,
    Disk(Arc<Disk>),
    /// The simulated disk of a simulation.
    Journal(Arc<dyn Journal>),
    /// A disk scripted by a test.
    #[cfg(test)]
    Scripted(Scripted),
}

/// A disk controlled by a simulation: the accepted changes, their latency, and their survival of a
/// crash.
pub trait Journal: std::fmt::Debug + Send + Sync {
    /// Reads everything that was committed, and counts the opening.
    fn open(&self) -> Contents;

    /// Notes the client of the txn that becomes `revision`; `None`: in process.
    fn note_writer(&self, peer: Option<SocketAddr>, revision: i64);

    /// Stores `changes`, all or none. Dropped before it is done, either may be.
    fn commit(&self, changes: Vec<Change>) -> connections::BoxFuture<Result<(), Error>>;
}

/// A test's implementation of commits.
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

    /// Returns true if committed changes wait for [`Backend::flush`].
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
    match blocking::spawn(work).await {
        Ok(result) => result,
        Err(error) => Err(Error::Failed(error.to_string())),
    }
}
