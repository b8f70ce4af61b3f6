//! Snapshot of etcd's database, as one member streams it.

use std::fmt;
use std::time::Duration;

use etcd_client::SnapshotStreaming;
use futures::future::BoxFuture;
use tokio::time::timeout;

use crate::client::Client;
use crate::error::Error;

/// Longest pause between two parts: the member reads them from its disk.
const PART_TIMEOUT: Duration = Duration::from_secs(30);

const DOING: &str = "save a snapshot";

/// A snapshot under way: the database, then its SHA-256. Parts are read from the member as they are
/// taken, so a slow reader needs no memory here.
pub struct Backup {
    parts: SnapshotStreaming,
    endpoints: std::sync::Arc<[String]>,
}

impl fmt::Debug for Backup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Backup").finish_non_exhaustive()
    }
}

impl Client {
    /// Starts a snapshot of the database of the member in use, which may be behind the others.
    ///
    /// # Errors
    /// etcd cannot be reached, or refuses: an embedded one has no snapshots, and one with
    /// authentication may require other rights.
    pub fn backup(&self) -> BoxFuture<'_, Result<Backup, Error>> {
        Box::pin(self.start_backup())
    }

    async fn start_backup(&self) -> Result<Backup, Error> {
        let parts = self.call(DOING, || {
            let mut snapshots = self.snapshots.clone();
            async move { snapshots.snapshot().await }
        });
        Ok(Backup {
            parts: parts.await?,
            endpoints: self.endpoints.clone(),
        })
    }
}

impl Backup {
    /// Returns the next part; `None` at the end.
    ///
    /// # Errors
    /// The connection broke, or the member pauses for too long: the bytes before are no snapshot.
    pub fn next_part(&mut self) -> BoxFuture<'_, Result<Option<Vec<u8>>, Error>> {
        Box::pin(self.receive())
    }

    async fn receive(&mut self) -> Result<Option<Vec<u8>>, Error> {
        match timeout(PART_TIMEOUT, self.parts.message()).await {
            Ok(Ok(part)) => Ok(part.map(|part| part.blob().to_vec())),
            Ok(Err(error)) => Err(Error::from_etcd(DOING, &self.endpoints, error)),
            Err(_) => Err(Error::Unknown {
                doing: DOING,
                source: None,
            }),
        }
    }
}
