//! Commands beside running tasks: their number is limited, and none outlives its task, its caller or
//! the agent.

use std::time::Duration;

use lifecycle::NoProcess;
use service_kit::CancellationToken;
use task_drivers::command::PARTS;
use task_drivers::{DriverError, ExecCommand, ExecInput, ExecIo, ExecOutput};
use tokio::sync::{OwnedSemaphorePermit, TryAcquireError, mpsc, oneshot};
use tokio::time::sleep;
use tracing::info;

use crate::context::Context;
use crate::handle::{Handle, RunningTask};

/// Interval of looks at the task. Drivers kill commands with their task; this covers those that start
/// while it ends.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// The reason why no command is run.
#[derive(Debug, thiserror::Error)]
pub enum ExecRefusal {
    #[error(transparent)]
    Task(#[from] NoProcess),
    #[error("the allocation has been removed")]
    Removed,
    #[error("the node runs no commands: its setting disable_remote_exec is on")]
    Disabled,
    #[error("the node runs as many commands as it may; end one, or try again later")]
    Busy,
}

/// The reason why a command has no exit code.
#[derive(Debug, thiserror::Error)]
pub enum ExecError {
    #[error(transparent)]
    Driver(#[from] DriverError),
    #[error("task {task:?} has ended, and the command with it")]
    TaskEnded { task: String },
    #[error("the node's agent is ending, and the command with it")]
    AgentEnds,
}

/// A running command. Dropping `output` kills it.
#[derive(Debug)]
pub struct Exec {
    pub input: mpsc::Sender<ExecInput>,
    pub output: mpsc::Receiver<ExecOutput>,
    /// The exit code, once `output` has ended.
    pub ended: oneshot::Receiver<Result<i32, ExecError>>,
}

/// Runs a command beside the task of an allocation, until the command, its task, its caller or the
/// agent ends.
///
/// # Errors
/// The task does not run, or the node takes no command.
pub async fn exec(
    context: &Context,
    handle: Handle,
    task: &str,
    command: ExecCommand,
    drain: CancellationToken,
) -> Result<Exec, ExecRefusal> {
    let permit = permit(context)?;
    let running = handle.find_task(task).await;
    let running = running.ok_or(ExecRefusal::Removed)??;
    let (input, inputs) = mpsc::channel(PARTS);
    let (outputs, output) = mpsc::channel(PARTS);
    let (end, ended) = oneshot::channel();
    let io = ExecIo {
        input: inputs,
        output: outputs,
    };
    tokio::spawn(async move {
        let _permit = permit;
        // The arguments may hold secrets.
        let program = command.line.first().cloned().unwrap_or_default();
        info!(task = %running.id, program, "command started beside a task");
        let result = tokio::select! {
            result = running.driver.exec(&running.id, command, io) => result.map_err(ExecError::from),
            () = end_of(&handle, &running) => Err(ExecError::TaskEnded {
                task: running.id.task.clone(),
            }),
            () = drain.cancelled() => Err(ExecError::AgentEnds),
        };
        match &result {
            Ok(code) => info!(task = %running.id, program, code, "command ended"),
            Err(error) => info!(task = %running.id, program, %error, "command killed or not run"),
        }
        // The caller may have gone.
        let _ = end.send(result);
    });
    Ok(Exec {
        input,
        output,
        ended,
    })
}

fn permit(context: &Context) -> Result<OwnedSemaphorePermit, ExecRefusal> {
    let slots = context.exec_slots.clone().ok_or(ExecRefusal::Disabled)?;
    slots.try_acquire_owned().map_err(|error| match error {
        TryAcquireError::NoPermits => ExecRefusal::Busy,
        TryAcquireError::Closed => ExecRefusal::Disabled,
    })
}

/// Returns once the attempt does not run any more.
async fn end_of(handle: &Handle, running: &RunningTask) {
    loop {
        sleep(LOOK_INTERVAL).await;
        match handle.find_task(&running.id.task).await {
            Some(Ok(now)) if now.id == running.id => {}
            _ => return,
        }
    }
}
