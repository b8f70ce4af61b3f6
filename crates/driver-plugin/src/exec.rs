//! Commands beside a task: with input where the plugin can, otherwise with output at its end.

use std::sync::Arc;
use std::time::Duration;

use futures::stream;
use task_drivers::command::PART_BYTES;
use task_drivers::{DriverError, ExecCommand, ExecInput, ExecIo, ExecOutput, TaskId};
use tokio::sync::mpsc;

use crate::calls::{CallError, of_status, within};
use crate::instance::Instance;
use crate::plugin::Plugin;
use crate::task::wire_duration;
use crate::wire::drivers::exec_task_streaming_request::{Setup, TerminalSize};
use crate::wire::drivers::{
    ExecTaskRequest, ExecTaskStreamingIoOperation, ExecTaskStreamingRequest,
    ExecTaskStreamingResponse, ExitResult,
};

/// Time for a command of a plugin that has no streams.
const COMMAND_LIMIT: Duration = Duration::from_secs(300);
/// Most output of a command, in bytes. Its reader may keep it, as checks do.
const OUTPUT_MAX: usize = 256 << 20;

impl Plugin {
    pub(crate) async fn exec_task(
        &self,
        id: &TaskId,
        command: ExecCommand,
        io: ExecIo,
    ) -> Result<i32, DriverError> {
        let refused = |reason: String| DriverError::Exec {
            id: id.clone(),
            reason,
        };
        if !self.facts().runs_commands {
            let driver = self.name;
            return Err(DriverError::NoCommands { driver });
        }
        let (instance, task_id) = self.attached(id).await?;
        let ExecIo { input, output } = io;
        let streamed = self
            .stream(&instance, &task_id, &command, input, &output)
            .await;
        let error = match streamed {
            Ok(code) => return Ok(code),
            Err(error) => error,
        };
        if !is_without_streams(&error) || command.terminal.is_some() {
            return Err(refused(error.to_string()));
        }
        let request = ExecTaskRequest {
            task_id,
            command: command.line,
            timeout: Some(wire_duration(COMMAND_LIMIT)),
        };
        let limit = COMMAND_LIMIT.saturating_add(instance.timing.quick_limit);
        let mut driver = instance.driver();
        let asked = within("ExecTask", limit, driver.exec_task(request));
        let done = tokio::select! {
            done = asked => done.map_err(|error| refused(error.to_string()))?,
            () = output.closed() => return Err(refused("its caller is gone".to_owned())),
        };
        send(&output, done.stdout, ExecOutput::Stdout).await;
        send(&output, done.stderr, ExecOutput::Stderr).await;
        Ok(code(done.result))
    }

    async fn stream(
        &self,
        instance: &Arc<Instance>,
        task_id: &str,
        command: &ExecCommand,
        input: mpsc::Receiver<ExecInput>,
        output: &mpsc::Sender<ExecOutput>,
    ) -> Result<i32, CallError> {
        let requests = requests(task_id, command, input);
        let mut driver = instance.driver();
        let answers = driver.exec_task_streaming(requests).await;
        let mut answers = answers.map_err(|status| of_status(&status))?.into_inner();
        let mut sent = 0;
        loop {
            let answer = tokio::select! {
                answer = answers.message() => answer.map_err(|status| of_status(&status))?,
                // Dropping the call ends the command.
                () = output.closed() => return Err(no("its caller is gone")),
                () = instance.gone.cancelled() => {
                    return Err(CallError::Gone("its process has ended".to_owned()));
                }
            };
            let Some(answer) = answer else {
                return Err(no("the plugin does not send the command's exit code"));
            };
            let ExecTaskStreamingResponse {
                stdout,
                stderr,
                exited,
                result,
            } = answer;
            for (part, make) in [
                (stdout, ExecOutput::Stdout as fn(Vec<u8>) -> ExecOutput),
                (stderr, ExecOutput::Stderr),
            ] {
                let data = part.unwrap_or_default().data;
                sent += data.len();
                if sent > OUTPUT_MAX {
                    return Err(no("the command's output is too long"));
                }
                // A slow reader makes the command wait.
                send(output, data, make).await;
            }
            if exited {
                return Ok(code(result));
            }
        }
    }
}

/// Returns the messages of a command: its setup, then its input as it comes.
fn requests(
    task_id: &str,
    command: &ExecCommand,
    input: mpsc::Receiver<ExecInput>,
) -> impl futures::Stream<Item = ExecTaskStreamingRequest> + Send + 'static {
    let setup = ExecTaskStreamingRequest {
        setup: Some(Setup {
            task_id: task_id.to_owned(),
            command: command.line.clone(),
            tty: command.terminal.is_some(),
        }),
        ..ExecTaskStreamingRequest::default()
    };
    let mut first = vec![setup];
    first.extend(command.terminal.map(size));
    let rest = stream::unfold((input, false), |(mut input, has_ended)| async move {
        if has_ended {
            // The stream stays open: its end would end the command.
            return std::future::pending().await;
        }
        let (request, has_ended) = match input.recv().await {
            Some(ExecInput::Stdin(data)) => (stdin(data, false), false),
            Some(ExecInput::Resize(to)) => (size(to), false),
            Some(ExecInput::EndOfStdin) | None => (stdin(Vec::new(), true), true),
        };
        Some((request, (input, has_ended)))
    });
    futures::StreamExt::chain(stream::iter(first), rest)
}

fn stdin(data: Vec<u8>, close: bool) -> ExecTaskStreamingRequest {
    ExecTaskStreamingRequest {
        stdin: Some(ExecTaskStreamingIoOperation { data, close }),
        ..ExecTaskStreamingRequest::default()
    }
}

fn size(size: task_drivers::TerminalSize) -> ExecTaskStreamingRequest {
    ExecTaskStreamingRequest {
        tty_size: Some(TerminalSize {
            height: size.rows.into(),
            width: size.columns.into(),
        }),
        ..ExecTaskStreamingRequest::default()
    }
}

async fn send(
    output: &mpsc::Sender<ExecOutput>,
    data: Vec<u8>,
    make: impl Fn(Vec<u8>) -> ExecOutput,
) {
    for part in data.chunks(PART_BYTES) {
        // The loop of the caller ends with its reader.
        let _ = output.send(make(part.to_vec())).await;
    }
}

/// Source: the text of Nomad's public library for drivers.
fn is_without_streams(error: &CallError) -> bool {
    matches!(error, CallError::Refused { message, is_unsupported, .. }
        if *is_unsupported || message.contains("does not support exec"))
}

fn code(result: Option<ExitResult>) -> i32 {
    let result = result.unwrap_or_default();
    match (result.exit_code, result.signal) {
        (0, signal) if signal > 0 => 128_i32.saturating_add(signal),
        (code, _) => code,
    }
}

fn no(reason: &str) -> CallError {
    CallError::Refused {
        message: reason.to_owned(),
        recoverable: None,
        is_unsupported: false,
    }
}
