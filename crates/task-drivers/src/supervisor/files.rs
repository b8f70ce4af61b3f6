//! Files in a supervisor's directory, for an agent that recovers the task.
//!
//! Shape: `intent.json` ([`Intent`]) before anything is started; `state.json` ([`State`]) once the
//! task runs; `exit.json` ([`End`]) before its end is reported. Each is written atomically. Only the
//! last must survive a power cut: no process that the others describe does.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use model::{ExitResult, Timestamp};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::cgroup::Limits;
use crate::driver::TaskNetwork;
use crate::process_id::ProcessId;

pub(crate) const INTENT: &str = "intent.json";
pub(crate) const STATE: &str = "state.json";
pub(crate) const EXIT: &str = "exit.json";

/// The start request. Written by the agent; holds the task's environment, secrets included.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Intent {
    /// As in [`super::protocol::VERSION`].
    pub(crate) version: u32,
    /// As in `<alloc id>/<task>/<attempt>`.
    pub(crate) task_id: String,
    pub(crate) boot_id: String,
    pub(crate) command: PathBuf,
    pub(crate) args: Vec<String>,
    pub(crate) env: BTreeMap<String, String>,
    pub(crate) work_dir: PathBuf,
    #[serde(default)]
    pub(crate) user: Option<User>,
    /// The node's slice; `None`: no control groups.
    #[serde(default)]
    pub(crate) cgroup_slice: Option<PathBuf>,
    pub(crate) cgroup_name: String,
    pub(crate) limits: Limits,
    #[serde(default)]
    pub(crate) oom_score_adj: i32,
    /// `None`: output is discarded.
    #[serde(default)]
    pub(crate) logs: Option<Logs>,
    /// `None`: the host's.
    #[serde(default)]
    pub(crate) network: Option<TaskNetwork>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct User {
    pub(crate) uid: u32,
    pub(crate) gid: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Logs {
    pub(crate) directory: PathBuf,
    pub(crate) task: String,
    pub(crate) max_files: u32,
    pub(crate) max_file_bytes: u64,
}

/// The running processes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct State {
    pub(crate) version: u32,
    pub(crate) boot_id: String,
    pub(crate) supervisor: ProcessId,
    pub(crate) task: ProcessId,
    /// True if the task has a control group of its own.
    #[serde(default)]
    pub(crate) has_cgroup: bool,
    pub(crate) started_at: Timestamp,
}

/// The end of the task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum End {
    Exited { exit: ExitResult, at: Timestamp },
    StartFailed { message: String, recoverable: bool },
}

/// Durability of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Survives {
    /// The death of any process. Sufficient for descriptions of processes, which a power cut ends as
    /// well; waiting for the disk would dominate the time of a start.
    Crash,
    /// A power cut.
    PowerCut,
}

/// Replaces `name` in `directory` atomically.
pub(crate) fn write<T: Serialize>(
    directory: &Path,
    name: &str,
    value: &T,
    survives: Survives,
) -> io::Result<()> {
    let target = directory.join(name);
    let draft = directory.join(format!("{name}.tmp"));
    let mut file = fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&draft)?;
    file.write_all(&serde_json::to_vec(value)?)?;
    if survives == Survives::PowerCut {
        file.sync_all()?;
    }
    fs::rename(&draft, &target)?;
    if survives == Survives::PowerCut {
        File::open(directory)?.sync_all()?;
    }
    Ok(())
}

/// Reads `name` in `directory`; `None` if it does not exist.
pub(crate) fn read<T: DeserializeOwned>(directory: &Path, name: &str) -> io::Result<Option<T>> {
    match fs::read(directory.join(name)) {
        Ok(bytes) => Ok(Some(serde_json::from_slice(&bytes)?)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}
