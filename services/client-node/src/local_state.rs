//! What survives the agent: its allocations, its runners' states, and how far it has acted.
//!
//! One thread owns the database and commits everything that has gathered, so that one wait for the
//! disk serves many runners. Writers do not wait: whoever must know that something is on disk asks
//! [`LocalState::flushed`]. A disk that is full loses nothing that is in memory: the same writes
//! are tried again.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use model::{AllocId, Timestamp};
use redb::{Database, DatabaseError, ReadableDatabase, ReadableTable, TableDefinition};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::sync::{mpsc, oneshot};
use tracing::{error, warn};

use crate::error::Error;
use crate::metrics::Metrics;

const FILE: &str = "state.redb";
/// Key → JSON.
const TABLE: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("state");
/// How many writes may wait for the writer: a few for each of a thousand runners. Beyond, runners
/// wait, which slows them down to what the disk can do.
const QUEUE: usize = 4_096;
/// How long another agent that is just ending may hold the database.
const OPEN_LIMIT: Duration = Duration::from_secs(5);
const OPEN_PAUSE: Duration = Duration::from_millis(100);
/// The pause before a commit that failed is tried again: a full disk stays full for a while.
const RETRY_PAUSE: Duration = Duration::from_secs(1);

/// A key of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Key {
    /// What a server assigned.
    Alloc(AllocId),
    /// How far its runner is.
    Runner(AllocId),
    /// What the servers have acknowledged of it.
    Acked(AllocId),
    Node,
}

impl Key {
    fn text(self) -> String {
        match self {
            Self::Alloc(id) => format!("alloc/{id}"),
            Self::Runner(id) => format!("runner/{id}"),
            Self::Acked(id) => format!("acked/{id}"),
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
}

/// Everything that was read back.
#[derive(Clone, Debug, Default)]
pub(crate) struct Restored {
    pub(crate) node: NodeState,
    pub(crate) allocs: BTreeMap<AllocId, Stored>,
}

enum Write {
    Put(String, Vec<u8>),
    Delete(String),
    Flush(oneshot::Sender<()>),
    /// Commits what came before, lets go of the database, then answers.
    Close(oneshot::Sender<()>),
}

/// Where runners and the agent put what must survive. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct LocalState {
    /// `None` on a node that keeps nothing.
    writes: Option<mpsc::Sender<Write>>,
}

impl LocalState {
    /// Keeps nothing.
    pub(crate) fn none() -> Self {
        Self { writes: None }
    }

    pub(crate) fn is_kept(&self) -> bool {
        self.writes.is_some()
    }

    /// Leaves what is written to the test, which sees its order: (key, value).
    #[cfg(test)]
    pub(crate) fn recorded() -> (Self, impl FnMut() -> Option<(String, Vec<u8>)>) {
        let (writes, mut queue) = mpsc::channel(QUEUE);
        let next = move || match queue.try_recv().ok()? {
            Write::Put(key, value) => Some((key, value)),
            _ => None,
        };
        let writes = Some(writes);
        (Self { writes }, next)
    }

    /// Opens or makes the database in `directory`, and reads everything in it.
    ///
    /// One that cannot be read is put aside: what runs is found by its supervisors, and the servers
    /// know the rest.
    pub(crate) fn open(directory: &Path, metrics: Metrics) -> Result<(Self, Restored), Error> {
        let path = directory.join(FILE);
        let (database, restored) = match open_and_read(&path) {
            Ok(opened) => opened,
            Err(redb::Error::DatabaseAlreadyOpen) => {
                return Err(Error::DataDirInUse {
                    path: directory.to_owned(),
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
        let (writes, queue) = mpsc::channel(QUEUE);
        thread::Builder::new()
            .name("local-state".to_owned())
            .spawn(move || {
                let closed = write_all(&database, queue, &metrics);
                drop(database);
                if let Some(done) = closed {
                    // Whoever asked may have gone.
                    let _ = done.send(());
                }
            })
            .map_err(Error::Thread)?;
        Ok((
            Self {
                writes: Some(writes),
            },
            restored,
        ))
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

    pub(crate) async fn put_node(&self, state: &NodeState) {
        self.put(Key::Node, state).await;
    }

    /// Forgets an allocation.
    pub(crate) async fn delete(&self, alloc_id: AllocId) {
        for key in [
            Key::Alloc(alloc_id),
            Key::Runner(alloc_id),
            Key::Acked(alloc_id),
        ] {
            self.write(|| Write::Delete(key.text())).await;
        }
    }

    /// Returns once everything written before is on disk.
    pub(crate) async fn flushed(&self) {
        let (done, wait) = oneshot::channel();
        self.write(|| Write::Flush(done)).await;
        // The sender is dropped when there is nothing to wait for.
        let _ = wait.await;
    }

    /// Writes what is left and lets go of the database. What comes after is lost.
    pub(crate) async fn close(&self) {
        let (done, wait) = oneshot::channel();
        self.write(|| Write::Close(done)).await;
        let _ = wait.await;
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
            // The thread ends with the process only.
            warn!("the local state is not written any more");
        }
    }
}

fn open_and_read(path: &Path) -> Result<(Database, Restored), redb::Error> {
    let database = open(path)?;
    let restored = read_all(&database)?;
    Ok((database, restored))
}

/// Opens the database, waiting a little for an agent that is just ending.
fn open(path: &Path) -> Result<Database, redb::Error> {
    let mut waited = Duration::ZERO;
    loop {
        match Database::create(path) {
            Err(DatabaseError::DatabaseAlreadyOpen) if waited < OPEN_LIMIT => {
                thread::sleep(OPEN_PAUSE);
                waited += OPEN_PAUSE;
            }
            opened => return Ok(opened?),
        }
    }
}

fn read_all(database: &Database) -> Result<Restored, redb::Error> {
    let mut restored = Restored::default();
    let reading = database.begin_read()?;
    let table = match reading.open_table(TABLE) {
        Err(redb::TableError::TableDoesNotExist(_)) => return Ok(restored),
        table => table?,
    };
    for row in table.iter()? {
        let (key, value) = row?;
        let (key, value) = (key.value(), value.value());
        let Some((kind, id)) = key.split_once('/') else {
            restored.node = decode(key, value).unwrap_or_default();
            continue;
        };
        let Ok(id) = id.parse::<AllocId>() else {
            warn!(key, "the local state has a key that names no allocation");
            continue;
        };
        let stored = restored.allocs.entry(id).or_default();
        match kind {
            "alloc" => stored.alloc = Some(value.to_vec()),
            "runner" => stored.runner = Some(value.to_vec()),
            "acked" => stored.acked = decode(key, value),
            _ => warn!(key, "the local state has a key of another version"),
        }
    }
    Ok(restored)
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

fn put_aside(path: &Path) -> io::Result<PathBuf> {
    let mut number = 0;
    loop {
        let aside = path.with_extension(format!("broken-{number}"));
        if !aside.exists() {
            fs::rename(path, &aside)?;
            return Ok(aside);
        }
        number += 1;
    }
}

/// Takes writes as they come and commits whatever has gathered while the last commit was made.
/// Returns who asked for the end.
fn write_all(
    database: &Database,
    mut queue: mpsc::Receiver<Write>,
    metrics: &Metrics,
) -> Option<oneshot::Sender<()>> {
    let mut gathered = Gathered::default();
    while let Some(write) = queue.blocking_recv() {
        gathered.take(write);
        loop {
            while let Ok(write) = queue.try_recv() {
                gathered.take(write);
            }
            match commit(database, &gathered.pending) {
                Ok(()) => break,
                Err(error) => {
                    metrics.local_state_failures.inc();
                    error!(%error, "cannot write the local state, trying again");
                    thread::sleep(RETRY_PAUSE);
                }
            }
        }
        metrics.local_state_commits.inc();
        gathered.pending.clear();
        for done in gathered.waiting.drain(..) {
            // Whoever asked may have gone.
            let _ = done.send(());
        }
        if gathered.closing.is_some() {
            break;
        }
    }
    gathered.closing
}

/// What is to be committed together.
#[derive(Default)]
struct Gathered {
    /// Key → value, `None`: to be deleted. The newest of a key counts, so a disk that does not take
    /// any more bounds this by the number of allocations.
    pending: BTreeMap<String, Option<Vec<u8>>>,
    waiting: Vec<oneshot::Sender<()>>,
    closing: Option<oneshot::Sender<()>>,
}

impl Gathered {
    fn take(&mut self, write: Write) {
        match write {
            Write::Put(key, value) => drop(self.pending.insert(key, Some(value))),
            Write::Delete(key) => drop(self.pending.insert(key, None)),
            Write::Flush(done) => self.waiting.push(done),
            Write::Close(done) => self.closing = Some(done),
        }
    }
}

fn commit(
    database: &Database,
    pending: &BTreeMap<String, Option<Vec<u8>>>,
) -> Result<(), redb::Error> {
    if pending.is_empty() {
        return Ok(());
    }
    let writing = database.begin_write()?;
    {
        let mut table = writing.open_table(TABLE)?;
        for (key, value) in pending {
            match value {
                Some(value) => drop(table.insert(key.as_str(), value.as_slice())?),
                None => drop(table.remove(key.as_str())?),
            }
        }
    }
    writing.commit()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: u128) -> AllocId {
        AllocId::from_random(number)
    }

    fn open(directory: &Path) -> (LocalState, Restored) {
        LocalState::open(directory, Metrics::default()).unwrap()
    }

    #[tokio::test]
    async fn what_was_flushed_is_read_back() {
        let folder = tempfile::tempdir().unwrap();
        let (state, restored) = open(folder.path());
        assert_eq!(restored.node, NodeState::default());
        state.put_alloc(id(1), &"first").await;
        state.put_alloc(id(1), &"second").await;
        state.put_runner(id(1), &7).await;
        state.put_acked(id(1), 9).await;
        state.put_alloc(id(2), &"gone").await;
        state.delete(id(2)).await;
        let node = NodeState {
            revision: 5,
            boot_id: "b".to_owned(),
            last_contact: Timestamp(3),
        };
        state.put_node(&node).await;
        state.close().await;
        let (_state, restored) = open(folder.path());
        assert_eq!(restored.node, node);
        assert_eq!(restored.allocs.keys().collect::<Vec<_>>(), [&id(1)]);
        let stored = &restored.allocs[&id(1)];
        assert_eq!(stored.alloc.as_deref(), Some(b"\"second\"".as_slice()));
        assert_eq!(stored.runner.as_deref(), Some(b"7".as_slice()));
        assert_eq!(stored.acked, Some(9));
    }

    #[tokio::test]
    async fn scenario_037_a_second_agent_is_refused_with_a_hint() {
        let folder = tempfile::tempdir().unwrap();
        let (_state, _) = open(folder.path());
        let error = LocalState::open(folder.path(), Metrics::default()).unwrap_err();
        assert!(error.to_string().contains("another agent uses"), "{error}");
    }

    #[tokio::test]
    async fn scenario_036_a_broken_database_is_put_aside() {
        let folder = tempfile::tempdir().unwrap();
        let (state, _) = open(folder.path());
        for number in 0..1_000 {
            state.put_alloc(id(number), &"x".repeat(1_000)).await;
        }
        state.close().await;
        let path = folder.path().join(FILE);
        let whole = fs::read(&path).unwrap();
        fs::write(&path, &whole[..whole.len() / 2]).unwrap();
        let (state, restored) = open(folder.path());
        assert!(restored.allocs.is_empty());
        assert!(path.with_extension("broken-0").exists());
        state.put_alloc(id(1), &"works").await;
        state.flushed().await;
    }

    #[tokio::test]
    async fn a_node_that_keeps_nothing_waits_for_nothing() {
        let state = LocalState::none();
        state.put_alloc(id(1), &"x").await;
        state.flushed().await;
        assert!(!state.is_kept());
    }
}
