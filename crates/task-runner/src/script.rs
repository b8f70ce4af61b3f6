//! Scripts: commands of the job inside its own running tasks, for checks and changed templates.
//!
//! A command has the task's namespaces, user and limits, no input, and at most its timeout. It is no
//! remote command, so neither `disable_remote_exec` nor the limit of those applies.

use std::time::Duration;

use lifecycle::{CheckOutcome, CheckResult};
use task_drivers::command::PARTS;
use task_drivers::{Driver, ExecCommand, ExecIo, ExecOutput, TaskId};
use tokio::sync::mpsc::WeakSender;
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

use crate::handle::{Command, RunningTask};
use crate::probe::MAX_OUTPUT_BYTES;

/// Exit code of a script that warns. Source: Consul's script checks.
const WARNING: i32 = 1;

/// The end of a script.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Ran {
    pub(crate) code: i32,
    /// The first 3 KiB that it printed, errors included.
    pub(crate) output: String,
}

/// Runs the program and arguments of `line` inside a task, and kills them after `limit`.
///
/// # Errors
/// The reason why there is no exit code.
pub(crate) async fn run(
    driver: &dyn Driver,
    id: &TaskId,
    line: &[String],
    limit: Duration,
) -> Result<Ran, String> {
    let (_, input) = mpsc::channel(1);
    let (parts, mut output) = mpsc::channel(PARTS);
    let command = ExecCommand {
        line: line.to_vec(),
        terminal: None,
    };
    let io = ExecIo {
        input,
        output: parts,
    };
    let running = driver.exec(id, command, io);
    let reading = async {
        let mut kept = Vec::new();
        while let Some(ExecOutput::Stdout(part) | ExecOutput::Stderr(part)) = output.recv().await {
            let room = MAX_OUTPUT_BYTES - kept.len();
            kept.extend(part.into_iter().take(room));
        }
        String::from_utf8_lossy(&kept).into_owned()
    };
    let ended = timeout(limit, async { tokio::join!(running, reading) }).await;
    match ended {
        Ok((Ok(code), output)) => Ok(Ran { code, output }),
        Ok((Err(error), _)) => Err(service_kit::run::chain(&error)),
        Err(_) => Err(format!(
            "it did not end within {}s and was killed",
            limit.as_secs_f64()
        )),
    }
}

/// A check that is a script.
pub(crate) struct ScriptCheck {
    /// Empty: the job names none, which no server accepts.
    pub(crate) task: String,
    pub(crate) line: Vec<String>,
    pub(crate) limit: Duration,
    /// Asks the runner for the task, which may have been restarted since the last run.
    pub(crate) runner: WeakSender<Command>,
}

impl ScriptCheck {
    /// Runs the check once.
    pub(crate) async fn run(&self) -> CheckResult {
        let failed = |output| CheckResult {
            output,
            ..CheckResult::default()
        };
        let running = match self.find_task().await {
            Ok(running) => running,
            Err(reason) => return failed(reason),
        };
        match run(running.driver.as_ref(), &running.id, &self.line, self.limit).await {
            Ok(Ran { code, output }) => CheckResult {
                outcome: match code {
                    0 => CheckOutcome::Passed,
                    WARNING => CheckOutcome::Warned,
                    _ => CheckOutcome::Failed,
                },
                code: 0,
                output,
            },
            Err(reason) => failed(reason),
        }
    }

    async fn find_task(&self) -> Result<RunningTask, String> {
        let gone = || "the allocation has been removed".to_owned();
        let (answer, answered) = oneshot::channel();
        let task = self.task.clone();
        let runner = self.runner.upgrade().ok_or_else(gone)?;
        let asked = runner.send(Command::FindTask { task, answer }).await;
        asked.map_err(|_| gone())?;
        let found = answered.await.map_err(|_| gone())?;
        found.map_err(|error| error.to_string())
    }
}
