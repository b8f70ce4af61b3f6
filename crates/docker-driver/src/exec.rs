//! Commands in a task's container.

use std::convert::Infallible;
use std::fs;

use bollard::container::LogOutput;
use bollard::exec::{CreateExecOptions, ResizeExecOptions, StartExecOptions, StartExecResults};
use futures::StreamExt as _;
use task_drivers::command::PART_BYTES;
use task_drivers::{
    DriverError, ExecCommand, ExecInput, ExecIo, ExecOutput, TaskId, TerminalSize, kill_session,
};
use tokio::io::{AsyncWrite, AsyncWriteExt as _};
use tokio::sync::mpsc;
use tracing::warn;

use crate::engine::Problem;
use crate::stop::engine;
use crate::tasks::Docker;

impl Docker {
    pub(crate) async fn exec_in_container(
        &self,
        id: &TaskId,
        command: ExecCommand,
        io: ExecIo,
    ) -> Result<i32, DriverError> {
        let Some(found) = self.find_running(id).await? else {
            return Err(DriverError::UnknownTask { id: id.clone() });
        };
        let failed = |error: bollard::errors::Error| engine(id)(Problem::from(error));
        let client = self.engine.client().await.map_err(engine(id))?;
        let has_terminal = command.terminal.is_some();
        let options = CreateExecOptions {
            attach_stdin: Some(true),
            attach_stdout: Some(true),
            attach_stderr: Some(true),
            tty: Some(has_terminal),
            cmd: Some(command.line),
            ..CreateExecOptions::default()
        };
        let made = client.create_exec(&found.id, options).await;
        let exec = made.map_err(failed)?.id;
        let mut running = Running {
            client: client.clone(),
            exec: exec.clone(),
            container: found.id.clone(),
            is_over: false,
        };
        let start = StartExecOptions {
            detach: false,
            tty: has_terminal,
            output_capacity: Some(PART_BYTES),
        };
        let started = client.start_exec(&exec, Some(start)).await;
        let StartExecResults::Attached {
            output: mut source,
            input: stdin,
        } = started.map_err(failed)?
        else {
            return Err(engine(id)(Problem::Unreachable("detached".to_owned())));
        };
        let ExecIo { mut input, output } = io;
        let terminal = Terminal {
            client: client.clone(),
            exec: exec.clone(),
        };
        if let Some(size) = command.terminal {
            terminal.resize(size).await;
        }
        let copying = async {
            while let Some(part) = source.next().await {
                let part = match part.map_err(failed)? {
                    LogOutput::StdErr { message } => ExecOutput::Stderr(message.into()),
                    LogOutput::StdOut { message }
                    | LogOutput::StdIn { message }
                    | LogOutput::Console { message } => ExecOutput::Stdout(message.into()),
                };
                // A slow reader makes the command wait.
                if output.send(part).await.is_err() {
                    return Err(caller_gone(id));
                }
            }
            Ok(())
        };
        tokio::select! {
            copied = copying => copied?,
            () = output.closed() => return Err(caller_gone(id)),
            never = feed(stdin, &mut input, &terminal) => match never {},
        }
        let ended = client.inspect_exec(&exec).await.map_err(failed)?;
        running.is_over = ended.running != Some(true);
        let code = ended.exit_code.and_then(|code| i32::try_from(code).ok());
        Ok(code.unwrap_or(-1))
    }
}

fn caller_gone(id: &TaskId) -> DriverError {
    DriverError::Exec {
        id: id.clone(),
        reason: "its caller is gone".to_owned(),
    }
}

/// The terminal of a command, at the engine.
struct Terminal {
    client: bollard::Docker,
    exec: String,
}

impl Terminal {
    async fn resize(&self, size: TerminalSize) {
        let options = ResizeExecOptions {
            height: size.rows,
            width: size.columns,
        };
        // A command that has just ended has no terminal.
        let _ = self.client.resize_exec(&self.exec, options).await;
    }
}

/// Writes input for as long as the command reads it. Never returns.
async fn feed(
    stdin: impl AsyncWrite + Unpin,
    input: &mut mpsc::Receiver<ExecInput>,
    terminal: &Terminal,
) -> Infallible {
    let mut stdin = stdin;
    let mut is_open = true;
    while let Some(part) = input.recv().await {
        match part {
            ExecInput::Stdin(data) if is_open => {
                // The command may have closed its input; more of it is dropped.
                is_open = stdin.write_all(&data).await.is_ok() && stdin.flush().await.is_ok();
            }
            ExecInput::EndOfStdin if is_open => {
                is_open = false;
                let _ = stdin.shutdown().await;
            }
            ExecInput::Resize(size) => terminal.resize(size).await,
            ExecInput::Stdin(_) | ExecInput::EndOfStdin => {}
        }
    }
    if is_open {
        let _ = stdin.shutdown().await;
    }
    std::future::pending().await
}

/// A command at the engine, which has no call that ends one: it is killed by its process id when this
/// is dropped before its end.
struct Running {
    client: bollard::Docker,
    exec: String,
    container: String,
    is_over: bool,
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        let (client, exec) = (self.client.clone(), self.exec.clone());
        let container = self.container.clone();
        tokio::spawn(async move {
            let Ok(found) = client.inspect_exec(&exec).await else {
                return;
            };
            let pid = found.pid.and_then(|pid| i32::try_from(pid).ok());
            let Some(pid) = pid.filter(|pid| found.running == Some(true) && *pid > 0) else {
                return;
            };
            // The engine may count processes differently, on another machine or in a namespace.
            let groups = fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default();
            if groups.contains(&container) {
                kill_session(pid);
            } else {
                warn!(
                    container,
                    "cannot kill a command whose caller is gone: the engine's process id is not of this machine"
                );
            }
        });
    }
}
