//! Events: the inputs of the machine.

use std::time::Duration;

use model::{ExitResult, RestartScope};

use crate::checks::{CheckKey, CheckResult};
use crate::spec::AllocSpec;

/// One event of the allocation.
///
/// Answers to an [`crate::Effect`] carry their attempt; an answer for a finished attempt changes
/// nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The loop has started; sent once after `new` or `restore`.
    Begin,
    /// Answers [`crate::Effect::Prerun`]: the directories exist, or an error.
    PrerunDone(Result<(), String>),
    /// Answers [`crate::Effect::Start`]: the process exists.
    Started { task: String, attempt: u32 },
    /// Answers [`crate::Effect::Start`]: no process exists.
    StartFailed {
        task: String,
        attempt: u32,
        failure: StartFailure,
    },
    /// Answers [`crate::Effect::Recover`]: the process still runs.
    Recovered { task: String, attempt: u32 },
    /// Answers [`crate::Effect::Recover`]: no process of the attempt runs, and its exit is unknown.
    /// With a known exit the answer is [`Event::Exited`].
    NotRecovered {
        task: String,
        attempt: u32,
        reason: String,
    },
    /// The process and all its children are gone.
    Exited {
        task: String,
        attempt: u32,
        exit: ExitResult,
    },
    /// Answers [`crate::Effect::Stop`]: the process may still run.
    StopFailed {
        task: String,
        attempt: u32,
        error: String,
    },
    /// A hook fails the running task, which ends for good.
    Failed {
        task: String,
        attempt: u32,
        reason: String,
    },
    /// The result of one run of a service check; `epoch` is that of its watch.
    Checked {
        key: CheckKey,
        epoch: u64,
        result: CheckResult,
    },
    /// A message of the driver for the user.
    DriverMessage { task: String, message: String },
    /// The download of the task's artifacts begins.
    DownloadingArtifacts { task: String },
    /// A note about the task's templates for the user.
    TemplateMessage { task: String, message: String },
    /// A note about the task's identities for the user.
    IdentityMessage { task: String, message: String },
    /// A note about the task's token of Vault for the user.
    VaultMessage { task: String, message: String },
    /// A message about a task's token of Consul.
    ConsulMessage { task: String, message: String },
    /// The plugin of storage that the task provides has become healthy, or is not healthy.
    PluginHealth {
        task: String,
        is_healthy: bool,
        message: String,
    },
    /// A note about the allocation's volumes for the user.
    VolumeMessage { message: String },
    /// A server's list was applied for the first time since the agent started.
    ServersContacted,
    /// The last answer of a server is `age` old.
    Contact { age: Duration },
    /// The servers gave the node up, and it is back.
    Reconnected,
    /// The job changed in place, without a new process.
    Update(Box<AllocSpec>),
    /// The allocation is to end.
    Stop { skip_delays: bool },
    /// A requested restart, which costs no attempt.
    Restart { scope: RestartScope, reason: String },
    /// An operator's signal is sent to a running task.
    Signaling { task: String, signal: String },
    /// A deadline may have passed.
    Tick,
}

/// A failed start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StartFailure {
    pub step: StartStep,
    pub message: String,
    /// A retry may succeed. Otherwise the restart policy does not apply.
    pub recoverable: bool,
}

/// The failed part of a start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartStep {
    /// The task's configuration is invalid.
    Validation,
    /// The download of artifacts.
    Artifacts,
    /// Directories, environment and the like.
    Hook,
    Driver,
}
