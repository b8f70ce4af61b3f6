//! Interface of task drivers, and its types.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::pin::Pin;

use model::job::LogConfig;
use model::{AllocId, AllocatedPort, ExitResult, Timestamp};
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::command::{ExecCommand, ExecIo};
use crate::dirs::TaskDirs;
use crate::resource_limits::ResourceLimits;
use crate::usage::Usage;

pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Queue of a driver's messages to the user, shown as events of the type `Driver`. Bounded: messages
/// beyond the capacity are dropped, because a task must not wait for a reader.
pub type Messages = mpsc::Sender<String>;

/// Starts tasks of one kind.
///
/// Every method is idempotent: a restarted agent repeats calls without knowing whether the first
/// one succeeded.
pub trait Driver: Send + Sync {
    /// Returns the driver's name in jobs.
    fn name(&self) -> &'static str;

    /// Returns whether the driver works on this node.
    fn fingerprint(&self) -> Fingerprint;

    /// Probes the facts of the fingerprint, and removes tasks that no record names. Called before
    /// the first fingerprint and at every interval.
    fn refresh(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }

    /// Returns the paths of a task's directories as the task sees them.
    fn inside(&self, dirs: &TaskDirs) -> TaskDirs {
        dirs.clone()
    }

    /// Returns the place that defines the users of the driver's tasks.
    fn user_source(&self) -> UserSource {
        UserSource::Node
    }

    /// Returns whether the driver can mount volumes into tasks.
    fn can_mount(&self) -> bool {
        self.mount_support() != MountSupport::None
    }

    /// Returns how the driver mounts directories into tasks.
    fn mount_support(&self) -> MountSupport {
        MountSupport::None
    }

    /// Returns how the driver's tasks use the network of their allocation.
    fn network_support(&self) -> NetworkSupport {
        NetworkSupport::HostOnly
    }

    /// Makes the network namespace of an allocation, without interfaces, or finds the one of an earlier
    /// call. Returns the id of a process in it. For drivers with [`NetworkSupport::Makes`].
    fn make_network(&self, _ask: NetworkAsk) -> BoxFuture<'_, Result<i32, String>> {
        Box::pin(async { Err("the driver makes no networks".to_owned()) })
    }

    /// Removes what [`Self::make_network`] has made, if anything.
    fn remove_network(&self, _alloc_id: AllocId) -> BoxFuture<'_, Result<(), String>> {
        Box::pin(async { Ok(()) })
    }

    /// Starts a task, and returns once its process exists. A process that an earlier call started is
    /// reused.
    fn start(&self, config: TaskConfig) -> BoxFuture<'_, Result<(), StartError>>;

    /// Finds the task that an earlier run of the agent started at `started_at`, or was about to start.
    ///
    /// [`Recovery::NotFound`] guarantees that no process of it runs any more.
    fn recover(
        &self,
        config: TaskConfig,
        started_at: Timestamp,
        now: Timestamp,
    ) -> BoxFuture<'_, Recovery>;

    /// Returns the exit of the task, once its process and all children are gone. Available until the
    /// task is forgotten.
    fn wait<'a>(
        &'a self,
        id: &'a TaskId,
        messages: &'a Messages,
    ) -> BoxFuture<'a, Result<ExitResult, DriverError>>;

    /// Signals the task to end with `signal` (empty: the driver's choice), kills it and its children
    /// after `grace`, and returns when all of them are gone.
    fn stop<'a>(
        &'a self,
        id: &'a TaskId,
        signal: &'a str,
        grace: std::time::Duration,
    ) -> BoxFuture<'a, Result<(), DriverError>>;

    /// Sends the task a signal.
    fn signal<'a>(
        &'a self,
        id: &'a TaskId,
        signal: &'a str,
    ) -> BoxFuture<'a, Result<(), DriverError>>;

    /// Runs a command beside a running task, as its user and within its limits; returns the command's
    /// exit code once all output is sent. Dropping the future kills the command, and so does the end of
    /// its reader.
    fn exec<'a>(
        &'a self,
        _id: &'a TaskId,
        _command: ExecCommand,
        _io: ExecIo,
    ) -> BoxFuture<'a, Result<i32, DriverError>> {
        let driver = self.name();
        Box::pin(async move { Err(DriverError::NoCommands { driver }) })
    }

    /// Removes the records of a task that has ended.
    fn forget<'a>(&'a self, id: &'a TaskId) -> BoxFuture<'a, Result<(), DriverError>>;

    /// Reads what all running tasks use, for [`Self::usage`], unless that reads it itself. Agents that
    /// publish the use of tasks call it at an interval.
    fn read_usage(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }

    /// Reads what the running tasks of one allocation use, as [`Self::read_usage`] does. Requests call it
    /// before they read their use; drivers that take long for each task override it.
    fn read_usage_of(&self, _alloc_id: AllocId) -> BoxFuture<'_, ()> {
        self.read_usage()
    }

    /// Returns the address that the driver gave a running task in a network of its own; `None`: the task uses
    /// the network of the node or of its allocation. Reads a small file.
    fn address(&self, _id: &TaskId) -> Option<DriverAddress> {
        None
    }

    /// Returns the resources that a task uses; `None`: it has ended, or the driver does not know. Blocks: it
    /// reads files.
    fn usage(&self, _id: &TaskId) -> Option<Usage> {
        None
    }

    /// Lists every task with records, from any run of the agent.
    fn leftovers(&self) -> Vec<TaskId>;

    /// Lists the tasks with records of one allocation.
    fn leftovers_of(&self, alloc_id: AllocId) -> Vec<TaskId> {
        let mut all = self.leftovers();
        all.retain(|id| id.alloc_id == alloc_id);
        all
    }
}

/// The place that defines the users of a driver's tasks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UserSource {
    /// The node's users. Tasks see the directories of the node under their own paths.
    #[default]
    Node,
    /// The task's image, whose names and numbers the node does not know. The task sees its directories as
    /// mounts, so it needs no access to the directories above them on the node.
    Image,
}

/// Mounts of directories in a driver's tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MountSupport {
    /// Tasks see the node's directories.
    None,
    /// Mounts that a task makes stay in the task.
    Private,
    /// Mounts that a task makes below a shared directory appear on the node.
    Shared,
}

/// Use of an allocation's own network by a driver's tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NetworkSupport {
    /// They use the host's network alone.
    HostOnly,
    /// They join the namespace at [`TaskNetwork::namespace`].
    Joins,
    /// They join a namespace that the driver itself makes.
    Makes,
}

/// An allocation's network that a driver makes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NetworkAsk {
    pub alloc_id: AllocId,
    pub hostname: String,
}

/// The network of a task's allocation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskNetwork {
    /// The file that pins the namespace.
    pub namespace: PathBuf,
    /// Files in place of the host's in `/etc`.
    pub hosts: PathBuf,
    pub resolv_conf: PathBuf,
}

/// A task's address in a network of its driver.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DriverAddress {
    pub host: String,
    /// Other machines are meant to use it: services without an address mode get it.
    pub is_advertised: bool,
    /// Port of the node → port of the task that it leads to.
    pub ports: BTreeMap<u16, u16>,
}

impl DriverAddress {
    /// Returns the port at which the task itself serves an assigned port.
    pub fn port(&self, port: &AllocatedPort) -> u16 {
        let otherwise = if port.to > 0 { port.to } else { port.value };
        self.ports.get(&port.value).copied().unwrap_or(otherwise)
    }
}

/// One start of one task of one allocation.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct TaskId {
    pub alloc_id: AllocId,
    pub task: String,
    /// 1 for the first start, one more with each restart.
    pub attempt: u32,
}

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.alloc_id, self.task, self.attempt)
    }
}

/// Everything a driver needs to start a task.
#[derive(Clone, Debug)]
pub struct TaskConfig {
    pub id: TaskId,
    /// Empty: the agent's own user.
    pub user: String,
    /// The `config` block, interpolated.
    pub config: serde_json::Map<String, serde_json::Value>,
    /// Name → value, interpolated.
    pub env: BTreeMap<String, String>,
    /// `None` on a simulated node.
    pub dirs: Option<TaskDirs>,
    pub resources: ResourceLimits,
    pub logs: LogConfig,
    /// The task's own ports, then the group's.
    pub ports: Vec<AllocatedPort>,
    /// The task's mounts of the group's volumes.
    pub mounts: Vec<TaskMount>,
    /// `None`: the host's.
    pub network: Option<TaskNetwork>,
    pub names: TaskNames,
    pub machine: MachineSize,
    /// Queue for messages of the start.
    pub messages: Messages,
    /// Cancelled when the start becomes obsolete.
    pub cancel: CancellationToken,
}

/// A volume in a task.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaskMount {
    /// The directory on the node.
    pub source: String,
    pub destination: String,
    pub read_only: bool,
    /// Mounts that the task makes below it appear on the node.
    pub is_shared: bool,
}

/// Names of a task's surroundings, for labels.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaskNames {
    pub namespace: String,
    pub job_id: String,
    pub job_name: String,
    pub group: String,
}

/// Cpu of the whole node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MachineSize {
    pub cpu_mhz: u64,
    pub cores: u64,
}

impl TaskConfig {
    /// A task without options, directories or limits. Its messages are dropped.
    pub fn new(id: TaskId) -> Self {
        Self {
            id,
            user: String::new(),
            config: serde_json::Map::new(),
            env: BTreeMap::new(),
            dirs: None,
            resources: ResourceLimits::default(),
            logs: LogConfig::default(),
            ports: Vec::new(),
            mounts: Vec::new(),
            network: None,
            names: TaskNames::default(),
            machine: MachineSize::default(),
            messages: mpsc::channel(1).0,
            cancel: CancellationToken::new(),
        }
    }
}

/// Result of a recovery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Recovery {
    Running {
        /// A message for the user, such as the loss of a supervisor.
        note: Option<String>,
    },
    Exited(ExitResult),
    NotFound {
        reason: String,
    },
}

/// Availability and health of a driver on this node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fingerprint {
    /// `false`: the node does not have the driver.
    pub detected: bool,
    pub healthy: bool,
    pub description: String,
    /// As in `driver.raw_exec` → `1`.
    pub attributes: BTreeMap<String, String>,
}

/// A failed start.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StartError {
    /// The `config` block is invalid; a retry would fail in the same way.
    #[error("{0}")]
    Config(String),
    #[error("{message}")]
    Failed { message: String, recoverable: bool },
}

/// A failed operation on a task.
#[derive(Debug, thiserror::Error)]
pub enum DriverError {
    #[error("task {id} is not known to the driver")]
    UnknownTask { id: TaskId },
    #[error("task {id} still runs: {reason}")]
    StillRuns { id: TaskId, reason: String },
    #[error("task {id} does not take signals: {reason}")]
    Signal { id: TaskId, reason: String },
    #[error("cannot reach the supervisor of task {id}")]
    Supervisor {
        id: TaskId,
        #[source]
        source: std::io::Error,
    },
    #[error("the container engine fails for task {id}: {reason}")]
    Engine { id: TaskId, reason: String },
    #[error("the supervisor of task {id} refuses: {reason}")]
    Refused { id: TaskId, reason: String },
    #[error("driver {driver} cannot run commands in its tasks")]
    NoCommands { driver: &'static str },
    #[error("cannot run a command beside task {id}: {reason}")]
    Exec { id: TaskId, reason: String },
    #[error("cannot remove the records of task {id}")]
    Forget {
        id: TaskId,
        #[source]
        source: std::io::Error,
    },
}
