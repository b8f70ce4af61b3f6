//! What survives the agent: its allocations, its runners' states, and how far it has acted.
//!
//! One thread owns the database and commits everything that has gathered, so that one wait for the
//! disk serves many runners. Writers do not wait: whoever must know that something is on disk asks
//! [`LocalState::flushed`]. A disk that is full loses nothing that is in memory: the same writes
//! are tried again. The thread is [`writer`]'s, the file [`disk`]'s.

mod disk;
mod memory;
#[cfg(test)]
mod tests;
mod writer;

use std::collections::BTreeMap;
use std::path::Path;
use std::thread;
use std::time::Duration;

use model::{AllocId, Timestamp};
use redb::Database;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::timeout;
use tracing::{error, warn};

use self::disk::{Unusable, open_and_read, put_aside};
pub use self::memory::Memory;
use self::writer::{CLOSE_LIMIT, Reopen, Write, Writer};
use crate::error::Error;
use crate::metrics::Metrics;
use crate::reporter::Told;

const FILE: &str = "state.redb";
/// How many writes may wait for the writer: a few for each of a thousand runners. Beyond, runners
/// wait, which slows them down to what the disk can do.
const QUEUE: usize = 4_096;
/// How long the end of the writer is waited for beyond its own limit: a disk that does not even
/// answer must not keep the agent.
const CLOSE_MARGIN: Duration = Duration::from_secs(5);

/// A key of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Key {
    /// What a server assigned.
    Alloc(AllocId),
    /// How far its runner is.
    Runner(AllocId),
    /// What the servers have acknowledged of it.
    Acked(AllocId),
    /// What servers were told of it last.
    Told(AllocId),
    Node,
}

impl Key {
    fn text(self) -> String {
        match self {
            Self::Alloc(id) => format!("alloc/{id}"),
            Self::Runner(id) => format!("runner/{id}"),
            Self::Acked(id) => format!("acked/{id}"),
            Self::Told(id) => format!("told/{id}"),
            Self::Node => "node".to_owned(),
        }
    }
}

/// What is kept of the node itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct NodeState {
    /// The highest revision that was acted on.
    pub(crate) revision: u64,
    /// The store that it counts in; empty: no gateway has told yet.
    pub(crate) store_id: String,
    pub(crate) boot_id: String,
    /// When a server answered last.
    pub(crate) last_contact: Timestamp,
}

/// One allocation as it was read back.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stored {
    pub(crate) alloc: Option<Vec<u8>>,
    pub(crate) runner: Option<Vec<u8>>,
    /// See [`crate::reporter`].
    pub(crate) acked: Option<u64>,
    pub(crate) told: Option<Told>,
}

/// Everything that was read back.
#[derive(Clone, Debug, Default)]
pub(crate) struct Restored {
    pub(crate) node: NodeState,
    pub(crate) allocs: BTreeMap<AllocId, Stored>,
}

impl Restored {
    fn add(&mut self, key: &str, value: &[u8]) {
        let Some((kind, id)) = key.split_once('/') else {
            self.node = decode(key, value).unwrap_or_default();
            return;
        };
        let Ok(id) = id.parse::<AllocId>() else {
            warn!(key, "the local state has a key that names no allocation");
            return;
        };
        let stored = self.allocs.entry(id).or_default();
        match kind {
            "alloc" => stored.alloc = Some(value.to_vec()),
            "runner" => stored.runner = Some(value.to_vec()),
            "acked" => stored.acked = decode(key, value),
            "told" => stored.told = decode(key, value),
            _ => warn!(key, "the local state has a key of another version"),
        }
    }
}

/// Where runners and the agent put what must survive. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct LocalState {
    /// `None` on a node that keeps nothing.
    writes: Option<mpsc::Sender<Write>>,
    is_writing: watch::Receiver<bool>,
}

impl LocalState {
    /// Keeps nothing.
    pub(crate) fn none() -> Self {
        Self::new(None)
    }

    fn new(writes: Option<mpsc::Sender<Write>>) -> Self {
        Self {
            writes,
            is_writing: watch::channel(true).1,
        }
    }

    pub(crate) fn is_kept(&self) -> bool {
        self.writes.is_some()
    }

    /// Leaves what is written to the test, which sees its order: (key, value), the
    /// latter empty when it is deleted.
    #[cfg(test)]
    pub(crate) fn recorded() -> (Self, impl FnMut() -> Option<(String, Vec<u8>)>) {
        let (writes, mut queue) = mpsc::channel(QUEUE);
        let next = move || match queue.try_recv().ok()? {
            Write::Put(key, value) => Some((key, value)),
            Write::Delete(key) => Some((key, Vec::new())),
            _ => None,
        };
        (Self::new(Some(writes)), next)
    }

    /// Opens or makes the database in `directory`, and reads everything in it.
    ///
    /// One that cannot be read is put aside: what runs is found by its supervisors, and the servers
    /// know the rest.
    pub(crate) fn open(directory: &Path, metrics: Metrics) -> Result<(Self, Restored), Error> {
        let path = directory.join(FILE);
        let (database, restored) = match open_and_read(&path) {
            Ok(opened) => opened,
            Err(Unusable::Error(redb::Error::DatabaseAlreadyOpen)) => {
                return Err(Error::DataDirInUse {
                    path: directory.to_owned(),
                });
            }
            Err(cause) if cause.may_pass() => {
                return Err(Error::LocalState {
                    path,
                    source: Box::new(cause),
                });
            }
            Err(cause) => {
                let aside = put_aside(&path).map_err(|source| Error::Path {
                    path: path.clone(),
                    what: "unreadable",
                    source,
                })?;
                error!(
                    path = %path.display(), aside = %aside.display(), error = %cause,
                    "the local state cannot be read and was put aside; running tasks are kept \
                     until a server says what to do with them"
                );
                open_and_read(&path).map_err(|source| Error::LocalState {
                    path: path.clone(),
                    source: Box::new(source),
                })?
            }
        };
        let reopen = Box::new(move || disk::open(&path));
        let state = Self::start(database, reopen, metrics)?;
        Ok((state, restored))
    }

    /// Reads everything in `memory`, and writes to it in a task.
    pub(crate) fn open_in(memory: &Memory) -> (Self, Restored) {
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

    /// Starts the thread that writes.
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

    /// Calls `change` whenever the disk begins or ceases to take what is written. Returns when
    /// nothing is written any more; never on a node that keeps nothing.
    pub(crate) async fn watch(&self, change: impl Fn(bool)) {
        if self.writes.is_none() {
            return std::future::pending().await;
        }
        let mut is_writing = self.is_writing.clone();
        while is_writing.changed().await.is_ok() {
            change(*is_writing.borrow_and_update());
        }
    }

    pub(crate) async fn put_alloc(&self, alloc_id: AllocId, record: &impl Serialize) {
        self.put(Key::Alloc(alloc_id), record).await;
    }

    pub(crate) async fn put_runner(&self, alloc_id: AllocId, state: &impl Serialize) {
        self.put(Key::Runner(alloc_id), state).await;
    }

    pub(crate) async fn put_acked(&self, alloc_id: AllocId, digest: u64) {
        self.put(Key::Acked(alloc_id), &digest).await;
    }

    pub(crate) async fn put_told(&self, alloc_id: AllocId, told: &Told) {
        self.put(Key::Told(alloc_id), told).await;
    }

    /// Forgets what servers have acknowledged.
    pub(crate) async fn delete_acked(&self, alloc_id: AllocId) {
        self.write(|| Write::Delete(Key::Acked(alloc_id).text()))
            .await;
    }

    pub(crate) async fn put_node(&self, state: &NodeState) {
        self.put(Key::Node, state).await;
    }

    /// Forgets an allocation.
    pub(crate) async fn delete(&self, alloc_id: AllocId) {
        for key in [
            Key::Alloc(alloc_id),
            Key::Runner(alloc_id),
            Key::Acked(alloc_id),
            Key::Told(alloc_id),
        ] {
            self.write(|| Write::Delete(key.text())).await;
        }
    }

    /// Returns once everything written before is on disk; `false`: it never will be.
    #[must_use = "what depends on it must not be done"]
    pub(crate) async fn flushed(&self) -> bool {
        if !self.is_kept() {
            return true;
        }
        let (done, wait) = oneshot::channel();
        self.write(|| Write::Flush(done)).await;
        wait.await.is_ok()
    }

    /// Writes what is left and lets go of the database; gives up on a disk that does not take it.
    /// What comes after is lost.
    pub(crate) async fn close(&self) {
        if !self.is_kept() {
            return;
        }
        let (done, wait) = oneshot::channel();
        let closing = async {
            self.write(|| Write::Close(done)).await;
            wait.await.is_ok()
        };
        if !matches!(timeout(CLOSE_LIMIT + CLOSE_MARGIN, closing).await, Ok(true)) {
            error!("the last of what the node was to remember is not on disk");
        }
    }

    async fn put(&self, key: Key, value: &impl Serialize) {
        let write = || match serde_json::to_vec(value) {
            Ok(bytes) => Write::Put(key.text(), bytes),
            Err(error) => {
                // Only a map with keys that are no strings cannot be written, and none has.
                error!(?key, %error, "cannot encode what is to be kept");
                Write::Delete(key.text())
            }
        };
        self.write(write).await;
    }

    async fn write(&self, write: impl FnOnce() -> Write) {
        if let Some(writes) = &self.writes
            && writes.send(write()).await.is_err()
        {
            // The agent ends for it, or was ending.
            warn!("the local state is not written any more");
        }
    }
}

/// Reads a record; one that makes no sense is as good as missing.
pub(crate) fn decode<T: DeserializeOwned>(key: &str, bytes: &[u8]) -> Option<T> {
    match serde_json::from_slice(bytes) {
        Ok(value) => Some(value),
        Err(error) => {
            error!(key, %error, "a record of the local state makes no sense");
            None
        }
    }
}
