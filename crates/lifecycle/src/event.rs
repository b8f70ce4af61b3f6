//! What a machine is told.

use std::time::Duration;

use model::ExitResult;

use crate::spec::AllocSpec;

/// One thing that happened to the allocation.
///
/// Answers to an [`crate::Effect`] carry the attempt they are about; an answer about an attempt
/// that is over changes nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The loop runs; sent once after `new` or `restore`.
    Begin,
    /// Answers [`crate::Effect::Prerun`]: the directories stand, or why not.
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
    /// Answers [`crate::Effect::Recover`]: no process of the attempt runs, and nobody knows how
    /// it ended. Had it ended while someone watched, [`Event::Exited`] would have been the answer.
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
    /// The driver has something to tell the user.
    DriverMessage { task: String, message: String },
    /// A server's answer has been applied for the first time since the agent started.
    ServersContacted,
    /// A server answered `age` ago.
    Contact { age: Duration },
    /// The server took this node for lost, and finds it back.
    Reconnected,
    /// The job changed in a way that needs no new process.
    Update(AllocSpec),
    /// The allocation is to end.
    Stop { skip_delays: bool },
    /// Somebody asks for fresh processes; costs no attempt.
    Restart { scope: RestartScope, reason: String },
    /// A deadline may have passed.
    Tick,
}

/// Which tasks to restart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RestartScope {
    /// This one, if it runs.
    Task(String),
    /// Those that run.
    Running,
    /// Dead ones too, in the order of a first start.
    All,
}

/// Why a task could not be started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StartFailure {
    pub step: StartStep,
    pub message: String,
    /// Whether another try may succeed; if not, the restart policy is not asked.
    pub recoverable: bool,
}

/// Which part of a start failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartStep {
    /// The task's configuration makes no sense.
    Validation,
    /// Directories, environment and the like.
    Hook,
    Driver,
}
