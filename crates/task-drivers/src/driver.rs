//! What every driver can do, and the nouns that takes.

use std::collections::BTreeMap;
use std::fmt;
use std::pin::Pin;

use model::job::LogConfig;
use model::{AllocId, ExitResult, Timestamp};
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::allowance::Allowance;
use crate::dirs::TaskDirs;

pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Where a driver puts what users should read: events of the type `Driver`. Bounded: what does not
/// fit is dropped, because a task must not wait for a reader.
pub type Messages = mpsc::Sender<String>;

/// Starts tasks of one kind.
///
/// Every method can be called again with the same arguments, by an agent that was restarted in
/// between and does not know whether the first call came through.
pub trait Driver: Send + Sync {
    /// The word in a job's `driver`.
    fn name(&self) -> &'static str;

    /// Says whether tasks can be started here.
    fn fingerprint(&self) -> Fingerprint;

    /// Tells whether tasks can be given a view of files of their own, with volumes in it.
    fn can_mount(&self) -> bool {
        false
    }

    /// Starts a process, and returns once it exists. One that had been started before, by an agent
    /// that forgot it, is taken up instead.
    fn start(&self, config: TaskConfig) -> BoxFuture<'_, Result<(), StartError>>;

    /// Finds a process that an earlier run of the agent started at `started_at`, or meant to start.
    ///
    /// [`Recovery::NotFound`] promises that nothing of it runs any more.
    fn recover(
        &self,
        config: TaskConfig,
        started_at: Timestamp,
        now: Timestamp,
    ) -> BoxFuture<'_, Recovery>;

    /// Returns how the process ended, once it and all its children are gone. Can be asked for as
    /// long as the task is not forgotten.
    fn wait<'a>(
        &'a self,
        id: &'a TaskId,
        messages: &'a Messages,
    ) -> BoxFuture<'a, Result<ExitResult, DriverError>>;

    /// Asks the process to end with `signal` (empty: the driver's choice), kills it and its
    /// children after `grace`, and returns when all of them are gone.
    fn stop<'a>(
        &'a self,
        id: &'a TaskId,
        signal: &'a str,
        grace: std::time::Duration,
    ) -> BoxFuture<'a, Result<(), DriverError>>;

    /// Sends the process a signal.
    fn signal<'a>(
        &'a self,
        id: &'a TaskId,
        signal: &'a str,
    ) -> BoxFuture<'a, Result<(), DriverError>>;

    /// Removes everything that is kept of a process that has ended.
    fn forget<'a>(&'a self, id: &'a TaskId) -> BoxFuture<'a, Result<(), DriverError>>;

    /// Lists every task that something is kept of, whichever run of the agent started it.
    fn leftovers(&self) -> Vec<TaskId>;

    /// Those of one allocation.
    fn leftovers_of(&self, alloc_id: AllocId) -> Vec<TaskId> {
        let mut all = self.leftovers();
        all.retain(|id| id.alloc_id == alloc_id);
        all
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
    /// `None` on a node that only pretends to run tasks.
    pub dirs: Option<TaskDirs>,
    pub allowance: Allowance,
    pub logs: LogConfig,
    /// Cancelled when the start is not wanted any more.
    pub cancel: CancellationToken,
}

/// What was found of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Recovery {
    Running {
        /// Something about it the user should know, such as a lost supervisor.
        note: Option<String>,
    },
    Exited(ExitResult),
    NotFound {
        reason: String,
    },
}

/// Whether and how well a driver works on this node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fingerprint {
    /// Not detected: the node does not have the driver at all.
    pub detected: bool,
    pub healthy: bool,
    pub description: String,
    /// As in `driver.raw_exec` → `1`.
    pub attributes: BTreeMap<String, String>,
}

/// Why a task could not be started.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StartError {
    /// The `config` block makes no sense; another try would fail in the same way.
    #[error("{0}")]
    Config(String),
    #[error("{message}")]
    Failed { message: String, recoverable: bool },
}

/// Why a driver could not do what it was asked to with a task.
#[derive(Debug, thiserror::Error)]
pub enum DriverError {
    #[error("task {id} is not known to the driver")]
    UnknownTask { id: TaskId },
    #[error("task {id} still runs: {reason}")]
    StillRuns { id: TaskId, reason: String },
    #[error("task {id} does not take signals: {reason}")]
    Signal { id: TaskId, reason: String },
    #[error("cannot speak to the supervisor of task {id}")]
    Supervisor {
        id: TaskId,
        #[source]
        source: std::io::Error,
    },
    #[error("the supervisor of task {id} refuses: {reason}")]
    Refused { id: TaskId, reason: String },
    #[error("cannot remove what is kept of task {id}")]
    Forget {
        id: TaskId,
        #[source]
        source: std::io::Error,
    },
}
