//! Storage of a node: a data directory, memory that outlives the agent, or none.
//!
//! Shape of a data directory: `client/` for the agent, `alloc/` for the allocations' files.

use std::path::{Path, PathBuf};

use model::NodeId;
use service_kit::IdSource;

use crate::error::Error;
use crate::identity::{CertifiedId, Identity};
use crate::memory::Memory;
use crate::metrics::Metrics;
use crate::records::Restored;
use crate::state::LocalState;

/// The agent's own directory below the data directory.
const STATE_DIR: &str = "client";

/// The kind of a node's storage.
#[derive(Clone, Debug)]
pub enum Storage {
    /// Nothing survives the agent.
    None,
    /// For simulations that restart the agent.
    Memory(Memory),
    /// The data directory.
    Directory(PathBuf),
}

/// A node's opened storage.
#[derive(Debug)]
pub struct Opened {
    pub identity: Identity,
    pub state: LocalState,
    pub restored: Restored,
    /// The directory of the allocations' files; `None` without a data directory.
    pub alloc_dir: Option<PathBuf>,
    /// The agent's own directory; `None` without a data directory.
    pub state_dir: Option<PathBuf>,
}

/// A node's storage, locked, before the node's identity is known: a node may get its id from a gateway,
/// which it asks only once its storage can be used.
#[derive(Debug)]
pub struct Locked {
    /// `None`: nothing survives the agent.
    memory: Option<Memory>,
    state: LocalState,
    restored: Restored,
    directories: Option<Directories>,
}

/// The directories of a data directory.
#[derive(Debug)]
struct Directories {
    state: PathBuf,
    alloc: PathBuf,
}

impl Storage {
    /// Opens the storage, locks it, and reads every record.
    ///
    /// # Errors
    /// The data directory is in use or cannot be used.
    pub async fn lock(self, metrics: Metrics) -> Result<Locked, Error> {
        match self {
            Self::None => Ok(Locked {
                memory: None,
                state: LocalState::none(),
                restored: Restored::default(),
                directories: None,
            }),
            Self::Memory(memory) => {
                let (state, restored) = LocalState::open_in(&memory);
                Ok(Locked {
                    memory: Some(memory),
                    state,
                    restored,
                    directories: None,
                })
            }
            // Opening waits for the disk, and for another agent that is just ending.
            Self::Directory(data_dir) => {
                unwound(blocking::spawn(move || Locked::directory(&data_dir, metrics)).await)
            }
        }
    }
}

impl Locked {
    fn directory(data_dir: &Path, metrics: Metrics) -> Result<Self, Error> {
        create(data_dir, 0o755)?;
        // Tasks get absolute paths.
        let data_dir = data_dir.canonicalize().map_err(|source| Error::Path {
            path: data_dir.to_owned(),
            what: "cannot find the data directory",
            source,
        })?;
        let (state_dir, alloc_dir) = (data_dir.join(STATE_DIR), data_dir.join("alloc"));
        create(&state_dir, 0o700)?;
        // Other users may enter the directory of an allocation, but not list them.
        create(&alloc_dir, 0o711)?;
        // The database is also the lock against a second agent.
        let (state, restored) = LocalState::open(&state_dir, metrics)?;
        Ok(Self {
            memory: None,
            state,
            restored,
            directories: Some(Directories {
                state: state_dir,
                alloc: alloc_dir,
            }),
        })
    }

    /// Returns the agent's own directory; `None` without a data directory.
    pub fn state_dir(&self) -> Option<&Path> {
        let directories = self.directories.as_ref();
        directories.map(|directories| directories.state.as_path())
    }

    /// Reads the node's identity. A new storage gets a new one, with the id of the certificate if there is
    /// one.
    ///
    /// # Errors
    /// The data directory cannot be used, or belongs to another node than the certificate.
    pub async fn identify(
        self,
        ids: &IdSource,
        certified: Option<CertifiedId>,
    ) -> Result<Opened, Error> {
        let identity = match (&self.directories, &self.memory) {
            (Some(directories), _) => {
                let (directory, ids) = (directories.state.clone(), ids.clone());
                let load = move || Identity::load(&directory, &ids, certified.as_ref());
                unwound(blocking::spawn(load).await)?
            }
            (None, Some(memory)) => memory.identity(ids),
            (None, None) => Identity::new(ids, certified.as_ref()),
        };
        let directories = self.directories;
        let (state_dir, alloc_dir) = directories.map(|it| (it.state, it.alloc)).unzip();
        Ok(Opened {
            identity,
            state: self.state,
            restored: self.restored,
            alloc_dir,
            state_dir,
        })
    }
}

/// Continues a panic of the thread.
fn unwound<T>(joined: Result<T, tokio::task::JoinError>) -> T {
    joined.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()))
}

impl Opened {
    /// A new identity, and a state that forgets every write.
    pub fn without_storage(ids: &IdSource, certified: Option<&CertifiedId>) -> Self {
        Self {
            identity: Identity::new(ids, certified),
            state: LocalState::none(),
            restored: Restored::default(),
            alloc_dir: None,
            state_dir: None,
        }
    }
}

/// Refuses an empty `data_dir`; `None` is a node without one.
///
/// # Errors
/// The setting and its problem.
pub fn check_data_dir(data_dir: Option<&Path>) -> Result<(), (&'static str, String)> {
    if data_dir.is_some_and(|path| path.as_os_str().is_empty()) {
        let problem = "is empty: want a directory, as in /var/lib/kafila";
        return Err(("data_dir", problem.to_owned()));
    }
    Ok(())
}

/// Returns the id that a node has in its data directory; `None`: it has not run yet.
///
/// # Errors
/// The file cannot be read, or holds no id.
pub fn kept_node_id(data_dir: &Path) -> Result<Option<NodeId>, Error> {
    Identity::kept_id(&data_dir.join(STATE_DIR))
}

fn create(path: &Path, mode: u32) -> Result<(), Error> {
    use std::os::unix::fs::DirBuilderExt;
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(mode)
        .create(path)
        .map_err(|source| Error::Path {
            path: path.to_owned(),
            what: "cannot create the directory",
            source,
        })
}
