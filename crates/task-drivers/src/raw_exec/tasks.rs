//! State of the driver: the directories of attempts, their supervisors and connections.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use model::AllocId;
use tracing::warn;

use super::link::{self, Link};
use super::settings::RawExecSettings;
use super::shared_cores::SharedCores;
use crate::cgroup::{self, TaskCgroup};
use crate::driver::TaskId;
use crate::process_id::boot_id;
use crate::process_usage;
use crate::supervisor::files::{self, START_REQUEST, StartRequest};
use crate::supervisor::mode::Mode;
use crate::supervisor::protocol::{Reply, Request, VERSION};
use crate::usage::Usage;

/// Timeout for a supervisor to start a task and confirm it. It takes one fork and two small files;
/// longer means a disk or machine in distress, where more waiting does not help.
const START_LIMIT: Duration = Duration::from_secs(10);
/// Timeout for a forgotten supervisor to exit before it is left to be reaped later.
const REAP_LIMIT: Duration = Duration::from_secs(1);

/// Runs processes under supervisors. Dropping it leaves them running.
#[derive(Debug)]
pub struct RawExec {
    pub(super) settings: RawExecSettings,
    /// The node's slice; `None`: no control groups here.
    pub(crate) slice: Option<PathBuf>,
    /// `None`: tasks that share cpu cannot be kept off dedicated cores.
    pub(super) shared_cores: Option<Arc<SharedCores>>,
    pub(crate) boot_id: String,
    /// The agent's own environment without the denied variables.
    pub(super) host_env: Vec<(String, String)>,
    attached: Mutex<HashMap<TaskId, Attached>>,
    /// Resources that tasks used when their processes were last read, by the text of their ids; only where
    /// control groups do not count everything.
    by_process: Mutex<HashMap<String, Usage>>,
}

/// Handles of this run of the agent to a task, besides its directory.
#[derive(Debug, Default)]
pub(super) struct Attached {
    /// The supervisor as a child process, to be reaped; `None`: an earlier run started it.
    pub(super) supervisor: Option<Child>,
    /// A connection on which the supervisor has confirmed the start and will report the exit.
    pub(super) watch: Option<Link>,
}

impl RawExec {
    pub fn new(settings: RawExecSettings) -> Self {
        let slice = settings.cgroup_parent.as_deref().and_then(cgroup::prepare);
        let host_env = settings.host_env(std::env::vars());
        remove_empty(&settings.state_dir);
        if settings.enabled && !slice.as_deref().is_some_and(cgroup::limits_memory) {
            warn!(
                "tasks may exceed their memory limit: this process cannot delegate the memory \
                 controller of cgroup v2"
            );
        }
        Self::in_slice(settings, slice, host_env)
    }

    pub(super) fn in_slice(
        settings: RawExecSettings,
        slice: Option<PathBuf>,
        host_env: Vec<(String, String)>,
    ) -> Self {
        let mut driver = Self {
            settings,
            slice,
            shared_cores: None,
            boot_id: boot_id(),
            host_env,
            attached: Mutex::default(),
            by_process: Mutex::default(),
        };
        let dedicated = driver.dedicated();
        let slice = driver.slice.as_deref();
        let shared = slice.and_then(|slice| SharedCores::new(slice, dedicated.into_iter()));
        driver.shared_cores = shared.map(Arc::new);
        driver
    }

    /// Runs tasks of another driver: with records in `state_dir`, in the same control groups, on the
    /// same cores.
    pub(crate) fn beside(&self, state_dir: PathBuf) -> Self {
        remove_empty(&state_dir);
        let other = Self {
            settings: RawExecSettings {
                state_dir,
                ..self.settings.clone()
            },
            slice: self.slice.clone(),
            shared_cores: self.shared_cores.clone(),
            boot_id: self.boot_id.clone(),
            host_env: Vec::new(),
            attached: Mutex::default(),
            by_process: Mutex::default(),
        };
        if let Some(shared) = &other.shared_cores {
            for (id, cores) in other.dedicated() {
                shared.dedicate(&id, &cores);
            }
        }
        other
    }

    /// Returns the dedicated cores of the tasks with records.
    fn dedicated(&self) -> Vec<(TaskId, Vec<u16>)> {
        let dedicated = self.kept().into_iter().filter_map(|id| {
            let request = self.kept_request(&id)?;
            Some((id, request.limits.cores))
        });
        dedicated.collect()
    }

    /// Returns the start request of a task with records; `None`: it is unreadable.
    pub(crate) fn kept_request(&self, id: &TaskId) -> Option<StartRequest> {
        files::read(&self.directory(id), START_REQUEST).ok()?
    }

    pub(super) fn directory(&self, id: &TaskId) -> PathBuf {
        self.settings
            .state_dir
            .join(id.alloc_id.to_string())
            .join(&id.task)
            .join(id.attempt.to_string())
    }

    pub(super) fn attached(&self) -> MutexGuard<'_, HashMap<TaskId, Attached>> {
        self.attached.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn attach(&self, id: &TaskId, change: impl FnOnce(&mut Attached)) {
        change(self.attached().entry(id.clone()).or_default());
    }

    /// Starts a supervisor and waits for its first reply about the task.
    pub(super) async fn begin(
        &self,
        id: &TaskId,
        directory: &Path,
        mode: Mode,
    ) -> io::Result<Reply> {
        let supervisor = link::spawn_supervisor(&self.settings.supervisor, directory, mode)?;
        self.attach(id, |attached| attached.supervisor = Some(supervisor));
        self.begin_watch(id, directory).await
    }

    /// Connects to a supervisor and waits for its first reply about the task.
    pub(super) async fn begin_watch(&self, id: &TaskId, directory: &Path) -> io::Result<Reply> {
        let mut link = Link::connect(directory).await?;
        link.send(&Request::Watch { version: VERSION }).await?;
        let reply = link.receive(START_LIMIT).await?;
        self.attach(id, |attached| attached.watch = Some(link));
        Ok(reply)
    }

    /// Returns what a task uses, by its control group; what that does not count, by its processes as last
    /// read.
    pub(super) fn task_usage(&self, id: &TaskId) -> Option<Usage> {
        let by_process = || self.by_process().get(&id.to_string()).copied();
        let Some(slice) = self.slice.as_deref() else {
            return by_process();
        };
        let usage = TaskCgroup::find(slice, &cgroup_name(id)).usage()?;
        Some(match usage.memory {
            Some(_) => usage,
            // The node's groups have no controller of memory.
            None => Usage {
                memory: by_process().and_then(|it| it.memory),
                anonymous: by_process().and_then(|it| it.anonymous),
                ..usage
            },
        })
    }

    /// Reads the processes of all tasks, on nodes whose control groups do not count everything.
    pub(super) async fn read_processes(&self) {
        let is_counted = self.slice.as_deref().is_some_and(cgroup::limits_memory);
        if !is_counted && let Ok(read) = blocking::spawn(process_usage::read).await {
            *self.by_process() = read;
        }
    }

    fn by_process(&self) -> MutexGuard<'_, HashMap<String, Usage>> {
        self.by_process
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Removes the directory, and reaps the supervisor, which has just exited.
    pub(super) async fn remove(&self, id: &TaskId, directory: &Path) -> io::Result<()> {
        let attached = self.attached().remove(id);
        if let Some(supervisor) = attached.and_then(|attached| attached.supervisor) {
            reap(supervisor).await;
        }
        let cgroup = self
            .slice
            .as_deref()
            .map(|slice| TaskCgroup::find(slice, &cgroup_name(id)));
        if let Some(Err(error)) = cgroup.map(|cgroup| cgroup.remove()) {
            warn!(%id, %error, "cannot remove the task's control group");
        }
        match fs::remove_dir_all(directory) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        if let Some(shared) = &self.shared_cores {
            shared.release(id);
        }
        // The directories of the task and the allocation, if this was their last attempt.
        for parent in directory.ancestors().skip(1).take(2) {
            if fs::remove_dir(parent).is_err() {
                break;
            }
        }
        Ok(())
    }

    /// Lists every attempt that has a directory.
    pub(super) fn kept(&self) -> Vec<TaskId> {
        let allocs = list(&self.settings.state_dir);
        let ids = allocs
            .iter()
            .filter_map(|alloc| name_of(alloc)?.parse().ok());
        ids.flat_map(|alloc_id| self.kept_of(alloc_id)).collect()
    }

    pub(super) fn kept_of(&self, alloc_id: AllocId) -> Vec<TaskId> {
        let mut found = Vec::new();
        for task in list(&self.settings.state_dir.join(alloc_id.to_string())) {
            for attempt in list(&task) {
                let number = name_of(&attempt).and_then(|name| name.parse().ok());
                if let (Some(task), Some(attempt)) = (name_of(&task), number) {
                    found.push(TaskId {
                        alloc_id,
                        task: task.to_owned(),
                        attempt,
                    });
                }
            }
        }
        found
    }
}

/// Waits for a supervisor that is about to exit, to remove it from the process table.
pub(super) async fn reap(mut supervisor: Child) {
    let reaped = blocking::spawn(move || supervisor.wait());
    if tokio::time::timeout(REAP_LIMIT, reaped).await.is_err() {
        warn!("a forgotten supervisor does not exit");
    }
}

pub(super) fn cgroup_name(id: &TaskId) -> String {
    format!("{}.{}.{}", id.alloc_id, id.task, id.attempt)
}

/// Creates the directory for the agent's user alone: the task's environment holds secrets.
pub(super) fn make_directory(directory: &Path) -> io::Result<()> {
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(directory)
}

/// Removes directories of allocations and tasks without an attempt in them, left by an agent that
/// died between creating or removing two levels. Called before anything is started.
fn remove_empty(state_dir: &Path) {
    for alloc in list(state_dir) {
        for task in list(&alloc) {
            // Fails for one that is not empty.
            let _ = fs::remove_dir(task);
        }
        let _ = fs::remove_dir(alloc);
    }
}

fn list(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten();
    entries
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .collect()
}

fn name_of(path: &Path) -> Option<&str> {
    path.file_name()?.to_str()
}
