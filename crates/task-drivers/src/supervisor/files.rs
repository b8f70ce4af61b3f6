//! Files in a supervisor's directory, for an agent that recovers the task.
//!
//! Shape: `intent.json` ([`StartRequest`]) before anything is started; `state.json` ([`State`]) once the
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
use crate::dirs::TaskDirs;
use crate::driver::{TaskConfig, TaskNetwork};
use crate::process_id::ProcessId;

/// The file of a [`StartRequest`]. Supervisors of tasks that an earlier agent has started read it by this
/// name, so the name stays.
pub(crate) const START_REQUEST: &str = "intent.json";
/// The file of a [`State`].
pub(crate) const STATE: &str = "state.json";
/// The file of an [`End`].
pub(crate) const EXIT: &str = "exit.json";

/// The start request. Written by the agent; holds the task's environment, secrets included.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StartRequest {
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
    /// `None`: the task runs on the host as it is.
    #[serde(default)]
    pub(crate) isolation: Option<Isolation>,
}

/// Namespaces, root and rights of an isolated task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Isolation {
    /// The task's directory, which becomes its root.
    pub(crate) root: PathBuf,
    /// The directory of all tasks of the allocation, which becomes `/alloc`.
    pub(crate) shared: PathBuf,
    /// The logs in it, which the task may only read.
    pub(crate) logs: PathBuf,
    /// Path in the task → path of the host, mounted read-only.
    pub(crate) host: BTreeMap<PathBuf, PathBuf>,
    /// Devices of the host, beside those that every task has.
    #[serde(default)]
    pub(crate) devices: Vec<PathBuf>,
    pub(crate) volumes: Vec<Volume>,
    pub(crate) own_pids: bool,
    pub(crate) own_ipc: bool,
    /// Supplementary groups.
    pub(crate) groups: Vec<u32>,
    /// Capabilities of the process, a bit each.
    pub(crate) capabilities: u64,
    /// Capabilities that it can get at most.
    pub(crate) bounding_capabilities: u64,
    /// Filter its system calls.
    pub(crate) seccomp: bool,
    /// Refuse to start it without its limits.
    pub(crate) needs_limits: bool,
}

/// A volume as the task sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Volume {
    pub(crate) source: PathBuf,
    pub(crate) destination: PathBuf,
    pub(crate) read_only: bool,
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

impl Logs {
    /// Returns where the output of a task goes; `None`: it is discarded.
    pub(crate) fn of(config: &TaskConfig, dirs: &TaskDirs) -> Option<Self> {
        (!config.logs.disabled).then(|| Self {
            directory: dirs.logs.clone(),
            task: config.id.task.clone(),
            max_files: config.logs.max_files,
            max_file_bytes: u64::from(config.logs.max_file_size_mib) * 1024 * 1024,
        })
    }
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
pub(crate) enum Durability {
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
    durability: Durability,
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
    if durability == Durability::PowerCut {
        file.sync_all()?;
    }
    fs::rename(&draft, &target)?;
    if durability == Durability::PowerCut {
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
