//! Records on disk: `<state>/<file>/plugin.json`, the plugin's last process; and for each attempt of a task
//! `<state>/<file>/tasks/<alloc id>/<task>/<attempt>/` with `task.json` before its start, `handle` after it,
//! `exit.json` after its end.
//!
//! Files are replaced as a whole, and survive a power cut.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use model::{AllocId, ExitResult};
use prost::Message as _;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use task_drivers::{AttemptDirs, DriverAddress, ProcessId, TaskId};

use crate::connect::Facts;
use crate::wire::drivers::TaskHandle;

const PLUGIN: &str = "plugin.json";
const TASK: &str = "task.json";
const HANDLE: &str = "handle";
const EXIT: &str = "exit.json";
const ADDRESS: &str = "address.json";
/// Tries to remove a directory, and the pause between them.
const REMOVE_TRIES: u32 = 10;
const REMOVE_PAUSE: Duration = Duration::from_millis(20);

/// The last process of a plugin.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PluginRecord {
    pub(crate) facts: Facts,
    /// `None`: it was ended.
    pub(crate) process: Option<ProcessId>,
    pub(crate) boot_id: String,
    pub(crate) socket: PathBuf,
    /// The program and settings that it was started with.
    pub(crate) origin: String,
}

/// An attempt of a task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TaskRecord {
    /// The task's id for the plugin.
    pub(crate) task_id: String,
}

#[derive(Clone, Debug)]
pub(crate) struct Records {
    base: PathBuf,
    attempts: AttemptDirs,
}

impl Records {
    pub(crate) fn new(base: PathBuf) -> Self {
        let attempts = AttemptDirs::new(base.join("tasks"));
        Self { base, attempts }
    }

    pub(crate) fn put_plugin(&self, record: &PluginRecord) -> io::Result<()> {
        let mut builder = fs::DirBuilder::new();
        builder.recursive(true).mode(0o700).create(&self.base)?;
        write(&self.base.join(PLUGIN), &serde_json::to_vec(record)?)
    }

    pub(crate) fn plugin(&self) -> Option<PluginRecord> {
        read(&self.base.join(PLUGIN))
    }

    pub(crate) fn directory(&self, id: &TaskId) -> PathBuf {
        self.attempts.directory(id)
    }

    /// Writes the record of a task that is about to be started.
    pub(crate) fn put(&self, id: &TaskId, record: &TaskRecord) -> io::Result<()> {
        let directory = self.attempts.create(id)?;
        write(&directory.join(TASK), &serde_json::to_vec(record)?)
    }

    pub(crate) fn get(&self, id: &TaskId) -> Option<TaskRecord> {
        read(&self.directory(id).join(TASK))
    }

    /// Writes the handle of a started task. It holds the task's environment, secrets included.
    pub(crate) fn put_handle(&self, id: &TaskId, handle: &TaskHandle) -> io::Result<()> {
        write(&self.directory(id).join(HANDLE), &handle.encode_to_vec())
    }

    /// Returns the handle; `None`: the start is not confirmed.
    pub(crate) fn handle(&self, id: &TaskId) -> Option<TaskHandle> {
        let bytes = fs::read(self.directory(id).join(HANDLE)).ok()?;
        TaskHandle::decode(bytes.as_slice()).ok()
    }

    pub(crate) fn put_exit(&self, id: &TaskId, exit: &ExitResult) -> io::Result<()> {
        write(&self.directory(id).join(EXIT), &serde_json::to_vec(exit)?)
    }

    pub(crate) fn exit(&self, id: &TaskId) -> Option<ExitResult> {
        read(&self.directory(id).join(EXIT))
    }

    pub(crate) fn put_address(&self, id: &TaskId, address: &DriverAddress) -> io::Result<()> {
        write(
            &self.directory(id).join(ADDRESS),
            &serde_json::to_vec(address)?,
        )
    }

    pub(crate) fn address(&self, id: &TaskId) -> Option<DriverAddress> {
        read(&self.directory(id).join(ADDRESS))
    }

    pub(crate) fn remove(&self, id: &TaskId) -> io::Result<()> {
        let mut tries = 0;
        loop {
            tries += 1;
            match self.attempts.remove(id) {
                // The process that copies the output may be making its files.
                Err(_) if tries < REMOVE_TRIES => std::thread::sleep(REMOVE_PAUSE),
                result => return result,
            }
        }
    }

    /// Returns whether a task has not ended, as far as is known.
    pub(crate) fn has_running(&self) -> bool {
        self.all().iter().any(|id| self.exit(id).is_none())
    }

    pub(crate) fn all(&self) -> Vec<TaskId> {
        self.attempts.all()
    }

    pub(crate) fn of(&self, alloc_id: AllocId) -> Vec<TaskId> {
        self.attempts.of(alloc_id)
    }
}

/// Replaces a file as a whole, and waits for the disk.
fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let new = path.with_extension("new");
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    let mut file = options.open(&new)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&new, path)?;
    match path.parent() {
        Some(parent) => File::open(parent)?.sync_all(),
        None => Ok(()),
    }
}

fn read<T: DeserializeOwned>(path: &Path) -> Option<T> {
    serde_json::from_slice(&fs::read(path).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_is_listed_until_it_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let records = Records::new(folder.path().to_owned());
        let id = TaskId {
            alloc_id: AllocId::from_random(1),
            task: "web".to_owned(),
            attempt: 2,
        };
        let record = TaskRecord {
            task_id: "x".to_owned(),
        };
        records.put(&id, &record).unwrap();
        assert_eq!(records.all(), std::slice::from_ref(&id));
        assert_eq!(records.get(&id), Some(record));
        assert!(records.handle(&id).is_none() && records.has_running());
        let handle = TaskHandle {
            version: 1,
            driver_state: vec![1, 2],
            ..TaskHandle::default()
        };
        records.put_handle(&id, &handle).unwrap();
        assert_eq!(records.handle(&id), Some(handle));
        records.put_exit(&id, &ExitResult::default()).unwrap();
        assert!(!records.has_running());
        records.remove(&id).unwrap();
        records.remove(&id).unwrap();
        assert!(records.all().is_empty());
        let mut left = fs::read_dir(folder.path().join("tasks")).unwrap();
        assert!(left.next().is_none());
    }
}
