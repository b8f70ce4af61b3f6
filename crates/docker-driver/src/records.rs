//! Records of attempts on disk: `<state>/<alloc id>/<task>/<attempt>/`, with the container's name and
//! log files, its address, and how far its output was copied.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use model::AllocId;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use task_drivers::{AttemptDirs, DriverAddress, TaskId};

const RECORD: &str = "container.json";
const POSITION: &str = "logs.json";
const ADDRESS: &str = "address.json";
const PROCESS: &str = "process.json";

/// The process of a container, as the agent has seen it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SeenProcess {
    pub(crate) pid: i32,
    /// The namespace that the agent saw it from: in another one, its absence says nothing.
    pub(crate) pid_namespace: PathBuf,
}

/// An attempt's container.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Record {
    pub(crate) name: String,
    /// The boot of the machine that it was started in.
    pub(crate) boot_id: String,
    /// `None`: the output is not collected.
    pub(crate) logs: Option<LogFiles>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LogFiles {
    pub(crate) directory: PathBuf,
    pub(crate) task: String,
    pub(crate) max_files: u32,
    pub(crate) max_file_bytes: u64,
}

#[derive(Debug)]
pub(crate) struct Records {
    attempts: AttemptDirs,
}

impl Records {
    pub(crate) fn new(base: PathBuf) -> Self {
        Self {
            attempts: AttemptDirs::new(base),
        }
    }

    pub(crate) fn directory(&self, id: &TaskId) -> PathBuf {
        self.attempts.directory(id)
    }

    /// Writes an attempt's record. The directory is for the agent's user alone.
    pub(crate) fn put(&self, id: &TaskId, record: &Record) -> io::Result<()> {
        let directory = self.attempts.create(id)?;
        write(&directory.join(RECORD), record, true)
    }

    /// Returns the record; `None`: there is none, or it is unreadable.
    pub(crate) fn get(&self, id: &TaskId) -> Option<Record> {
        read(&self.directory(id).join(RECORD))
    }

    pub(crate) fn has(&self, id: &TaskId) -> bool {
        self.directory(id).exists()
    }

    /// Writes the address of the attempt's container. It need not survive a power cut, nor does the container.
    pub(crate) fn put_address(&self, id: &TaskId, address: &DriverAddress) -> io::Result<()> {
        write(&self.directory(id).join(ADDRESS), address, false)
    }

    /// Returns the address of the attempt's container; `None`: it has none.
    pub(crate) fn address(&self, id: &TaskId) -> Option<DriverAddress> {
        read(&self.directory(id).join(ADDRESS))
    }

    /// Writes the container's process, which the agent has seen. It need not survive a power cut.
    pub(crate) fn put_process(&self, id: &TaskId, process: &SeenProcess) -> io::Result<()> {
        write(&self.directory(id).join(PROCESS), process, false)
    }

    /// Returns the process that the agent has seen; `None`: none, or the engine counts processes differently.
    pub(crate) fn process(&self, id: &TaskId) -> Option<SeenProcess> {
        read(&self.directory(id).join(PROCESS))
    }

    /// Returns how far the output was copied.
    pub(crate) fn position<T: DeserializeOwned>(&self, id: &TaskId) -> Option<T> {
        read(&self.directory(id).join(POSITION))
    }

    /// Returns the file of [`Self::position`], for [`write_position`].
    pub(crate) fn position_file(&self, id: &TaskId) -> PathBuf {
        self.directory(id).join(POSITION)
    }

    pub(crate) fn remove(&self, id: &TaskId) -> io::Result<()> {
        self.attempts.remove(id)
    }

    pub(crate) fn all(&self) -> Vec<TaskId> {
        self.attempts.all()
    }

    pub(crate) fn of(&self, alloc_id: AllocId) -> Vec<TaskId> {
        self.attempts.of(alloc_id)
    }
}

/// Writes how far the output was copied. It need not survive a power cut.
pub(crate) fn write_position(file: &Path, position: &impl Serialize) -> io::Result<()> {
    write(file, position, false)
}

/// Replaces a file as a whole.
pub(crate) fn write(file: &Path, value: &impl Serialize, is_durable: bool) -> io::Result<()> {
    let new = file.with_extension("new");
    fs::write(&new, serde_json::to_vec(value)?)?;
    if is_durable {
        fs::File::open(&new)?.sync_all()?;
    }
    fs::rename(&new, file)
}

fn read<T: DeserializeOwned>(file: &Path) -> Option<T> {
    serde_json::from_slice(&fs::read(file).ok()?).ok()
}
