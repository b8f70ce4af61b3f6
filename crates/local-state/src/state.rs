//! The handle to the local state: writes of assignments, lifecycle states, reports and the node's
//! progress.
//!
//! One thread owns the database and commits batches, so that one disk sync serves many runners.
//! Writes return before they are durable; [`LocalState::flushed`] waits for durability. A full disk
//! loses nothing in memory: the same writes are retried.

#[cfg(test)]
mod tests;

use std::path::Path;
use std::thread;
use std::time::Duration;

use lifecycle::LastReport;
use model::AllocId;
use redb::Database;
use serde::Serialize;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::timeout;
use tracing::{error, warn};

use crate::disk::{self, Unusable, open_and_read, set_aside};
use crate::error::Error;
use crate::memory::Memory;
use crate::metrics::Metrics;
use crate::queue::{CLOSE_LIMIT, QUEUE, Write};
use crate::records::{DynamicMeta, Key, NodeState, Restored};
use crate::writer::{Reopen, Writer};

const FILE: &str = "state.redb";
/// Timeout for the writer to end beyond its own limit: a hanging disk must not block the agent.
const CLOSE_MARGIN: Duration = Duration::from_secs(5);

/// The write side of the local state. Cheap to clone.
#[derive(Clone, Debug)]
pub struct LocalState {
    /// `None` on a node without storage.
    writes: Option<mpsc::Sender<Write>>,
    is_writing: watch::Receiver<bool>,
}

impl LocalState {
    /// Returns a state that forgets every write.
    pub fn none() -> Self {
        Self::new(None)
    }

    fn new(writes: Option<mpsc::Sender<Write>>) -> Self {
        Self {
            writes,
            is_writing: watch::channel(true).1,
        }
    }

    /// Returns whether writes survive the agent.
    pub fn is_durable(&self) -> bool {
        self.writes.is_some()
    }

    /// For tests of the order of writes: returns a state, and the next write as (key, value); an
    /// empty value is a deletion.
    pub fn recorded() -> (Self, impl FnMut() -> Option<(String, Vec<u8>)>) {
        let (writes, mut queue) = mpsc::channel(QUEUE);
        let next = move || match queue.try_recv().ok()? {
            Write::Put(key, value) => Some((key, value)),
            Write::Delete(key) => Some((key, Vec::new())),
            _ => None,
        };
        (Self::new(Some(writes)), next)
    }

    /// Opens or creates the database in `directory`, and reads every record.
    ///
    /// An unreadable database is set aside: supervisors know the running tasks, and the servers know
    /// the rest.
    ///
    /// # Errors
    /// Another agent uses the directory, or the disk refuses.
    pub fn open(directory: &Path, metrics: Metrics) -> Result<(Self, Restored), Error> {
        let path = directory.join(FILE);
        let (database, restored) = match open_and_read(&path) {
            Ok(opened) => opened,
            Err(Unusable::Error(redb::Error::DatabaseAlreadyOpen)) => {
                return Err(Error::DataDirInUse {
                    path: directory.to_owned(),
                });
            }
            Err(cause) if cause.is_transient() => {
                return Err(Error::Database {
                    path,
                    source: Box::new(cause),
                });
            }
            Err(cause) => {
                let aside = set_aside(&path).map_err(|source| Error::Path {
                    path: path.clone(),
                    what: "unreadable",
                    source,
                })?;
                error!(
                    path = %path.display(), aside = %aside.display(), error = %cause,
                    "the local state cannot be read and was set aside; running tasks go on until the \
                     servers list the node's allocations"
                );
                open_and_read(&path).map_err(|source| Error::Database {
                    path: path.clone(),
                    source: Box::new(source),
                })?
            }
        };
        let reopen = Box::new(move || disk::open(&path));
        let state = Self::start(database, reopen, metrics)?;
        Ok((state, restored))
    }

    /// Reads every record in `memory`, and writes to it in a tokio task.
    pub fn open_in(memory: &Memory) -> (Self, Restored) {
        let restored = memory.read();
        let (writes, queue) = mpsc::channel(QUEUE);
        let (is_writing, seen) = watch::channel(true);
        tokio::spawn(memory.clone().run(queue, is_writing));
        let state = Self {
            writes: Some(writes),
            is_writing: seen,
        };
        (state, restored)
    }

    /// Starts the writer thread.
    fn start(database: Database, reopen: Reopen, metrics: Metrics) -> Result<Self, Error> {
        let (writes, queue) = mpsc::channel(QUEUE);
        let (is_writing, seen) = watch::channel(true);
        let writer = Writer {
            database: Some(database),
            reopen,
            is_writing,
            metrics,
        };
        thread::Builder::new()
            .name("local-state".to_owned())
            .spawn(move || writer.run(queue))
            .map_err(Error::Thread)?;
        Ok(Self {
            writes: Some(writes),
            is_writing: seen,
        })
    }

    /// Calls `change` whenever commits start to fail or succeed again. Returns when the writer has
    /// ended; never on a node without storage.
    pub async fn watch(&self, change: impl Fn(bool)) {
        if self.writes.is_none() {
            return std::future::pending().await;
        }
        let mut is_writing = self.is_writing.clone();
        while is_writing.changed().await.is_ok() {
            change(*is_writing.borrow_and_update());
        }
    }

    pub async fn put_alloc(&self, alloc_id: AllocId, record: &impl Serialize) {
        self.put(Key::Alloc(alloc_id), record).await;
    }

    pub async fn put_runner(&self, alloc_id: AllocId, state: &impl Serialize) {
        self.put(Key::Runner(alloc_id), state).await;
    }

    pub async fn put_acked(&self, alloc_id: AllocId, digest: u64) {
        self.put(Key::Acked(alloc_id), &digest).await;
    }

    pub async fn put_last_report(&self, alloc_id: AllocId, report: &LastReport) {
        self.put(Key::LastReport(alloc_id), report).await;
    }

    /// Forgets the acknowledged report.
    pub async fn delete_acked(&self, alloc_id: AllocId) {
        self.write(|| Write::Delete(Key::Acked(alloc_id).text()))
            .await;
    }

    pub async fn put_node(&self, state: &NodeState) {
        self.put(Key::Node, state).await;
    }

    pub async fn put_meta(&self, meta: &DynamicMeta) {
        self.put(Key::DynamicMeta, meta).await;
    }

    /// Forgets an allocation.
    pub async fn delete(&self, alloc_id: AllocId) {
        for key in [
            Key::Alloc(alloc_id),
            Key::Runner(alloc_id),
            Key::Acked(alloc_id),
            Key::LastReport(alloc_id),
            Key::FormerLastReport(alloc_id),
        ] {
            self.write(|| Write::Delete(key.text())).await;
        }
    }

    /// Returns once every earlier write is durable; `false`: it never will be.
    #[must_use = "an operation that depends on durability must not go on without it"]
    pub async fn flushed(&self) -> bool {
        if !self.is_durable() {
            return true;
        }
        let (done, wait) = oneshot::channel();
        self.write(|| Write::Flush(done)).await;
        wait.await.is_ok()
    }

    /// Commits the remaining writes and closes the database; gives up on a failing disk. Later writes
    /// are lost.
    pub async fn close(&self) {
        if !self.is_durable() {
            return;
        }
        let (done, wait) = oneshot::channel();
        let closing = async {
            self.write(|| Write::Close(done)).await;
            wait.await.is_ok()
        };
        if !matches!(timeout(CLOSE_LIMIT + CLOSE_MARGIN, closing).await, Ok(true)) {
            error!("the last records of the local state are not on disk");
        }
    }

    async fn put(&self, key: Key, value: &impl Serialize) {
        let write = || match serde_json::to_vec(value) {
            Ok(bytes) => Write::Put(key.text(), bytes),
            Err(error) => {
                // Only a map whose keys are not strings cannot be encoded, and no record has one.
                error!(?key, %error, "cannot encode a record of the local state");
                Write::Delete(key.text())
            }
        };
        self.write(write).await;
    }

    async fn write(&self, write: impl FnOnce() -> Write) {
        if let Some(writes) = &self.writes
            && writes.send(write()).await.is_err()
        {
            // The agent is ending, for this reason or another.
            warn!("a record of the local state is lost: its writer has ended");
        }
    }
}
