//! Commands beside tasks, for callers of a gateway.

use std::pin::Pin;

use futures::Stream;
use futures::stream::unfold;
use proto::internal::v1::NodeExecInput;
use proto::v1::exec_input::Input;
use proto::v1::exec_output::Output;
use proto::v1::{self, ExecStart};
use task_drivers::command::PART_BYTES;
use task_drivers::{ExecCommand, ExecInput, ExecOutput, TerminalSize};
use task_runner::exec::{Exec, ExecError, ExecRefusal};
use tokio::sync::mpsc;
use tonic::{Status, Streaming};

use super::operations::{Operations, not_here, read_alloc_id};

pub(super) type Outputs = Pin<Box<dyn Stream<Item = Result<v1::ExecOutput, Status>> + Send>>;

/// Starts a command; the stream of its output keeps it running.
///
/// # Errors
/// The request is invalid, or the command cannot be run.
pub(super) async fn exec(
    operations: &Operations,
    mut inputs: Streaming<NodeExecInput>,
) -> Result<Outputs, Status> {
    let first = inputs.message().await?.unwrap_or_default();
    operations.check_secret(&first.secret)?;
    let Some(Input::Start(start)) = first.input.and_then(|input| input.input) else {
        return Err(proto::status::invalid_field("start", "missing".to_owned()));
    };
    let alloc_id = read_alloc_id(&start.alloc_id)?;
    let handle = operations
        .agent
        .handle(alloc_id)
        .ok_or_else(|| not_here(alloc_id))?;
    let task = start.task.clone();
    let command = read_command(start)?;
    let context = &operations.context.tasks;
    let started =
        task_runner::exec::exec(context, handle, &task, command, operations.drain.clone());
    let exec = started.await.map_err(|refusal| match refusal {
        ExecRefusal::Removed => not_here(alloc_id),
        ExecRefusal::Busy => Status::resource_exhausted(refusal.to_string()),
        ExecRefusal::Task(_) | ExecRefusal::Disabled => {
            Status::failed_precondition(format!("allocation {alloc_id}: {refusal}"))
        }
    })?;
    tokio::spawn(pass_on(inputs, exec.input.clone()));
    Ok(Box::pin(unfold(Some(exec), next_output)))
}

fn read_command(start: ExecStart) -> Result<ExecCommand, Status> {
    if start.command.first().is_none_or(String::is_empty) {
        let message = "missing: the program and its arguments".to_owned();
        return Err(proto::status::invalid_field("command", message));
    }
    Ok(ExecCommand {
        line: start.command,
        terminal: start.terminal.map(size),
    })
}

fn size(size: v1::TerminalSize) -> TerminalSize {
    let number = |number: u32| u16::try_from(number).unwrap_or(u16::MAX);
    TerminalSize {
        rows: number(size.rows),
        columns: number(size.columns),
    }
}

/// Passes input on, as fast as the command reads it, until the command or the caller ends.
async fn pass_on(mut inputs: Streaming<NodeExecInput>, queue: mpsc::Sender<ExecInput>) {
    loop {
        let message = tokio::select! {
            message = inputs.message() => message,
            () = queue.closed() => return,
        };
        let input = match message {
            Ok(Some(message)) => message.input.and_then(|input| input.input),
            Ok(None) => {
                // The command may have ended.
                let _ = queue.send(ExecInput::EndOfStdin).await;
                return;
            }
            // The caller is gone; the end of its output tells the command.
            Err(_) => return,
        };
        let parts = match input {
            Some(Input::Stdin(data)) if data.is_empty() => vec![ExecInput::EndOfStdin],
            Some(Input::Stdin(data)) => {
                let parts = data.chunks(PART_BYTES);
                parts.map(|part| ExecInput::Stdin(part.to_vec())).collect()
            }
            Some(Input::TerminalSize(to)) => vec![ExecInput::Resize(size(to))],
            Some(Input::Start(_)) | None => Vec::new(),
        };
        for part in parts {
            if queue.send(part).await.is_err() {
                return;
            }
        }
    }
}

async fn next_output(exec: Option<Exec>) -> Option<(Result<v1::ExecOutput, Status>, Option<Exec>)> {
    let mut exec = exec?;
    let output = match exec.output.recv().await {
        Some(ExecOutput::Stdout(data)) => Output::Stdout(data),
        Some(ExecOutput::Stderr(data)) => Output::Stderr(data),
        None => {
            let last = match exec.ended.await {
                Ok(Ok(code)) => Ok(message(Output::ExitCode(code))),
                Ok(Err(error)) => Err(status_of(&error)),
                Err(_) => Err(Status::internal("the command was lost")),
            };
            return Some((last, None));
        }
    };
    Some((Ok(message(output)), Some(exec)))
}

fn message(output: Output) -> v1::ExecOutput {
    v1::ExecOutput {
        output: Some(output),
    }
}

fn status_of(error: &ExecError) -> Status {
    match error {
        ExecError::Driver(_) | ExecError::TaskEnded { .. } => {
            Status::failed_precondition(error.to_string())
        }
        ExecError::AgentEnds => Status::unavailable(error.to_string()),
    }
}
