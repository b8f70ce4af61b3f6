//! Commands beside a task: a process in the task's control group, and the copies of its input and
//! output.

use std::convert::Infallible;
use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{ExitStatus, Stdio};
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, ChildStdin, Command};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::tasks::RawExec;
use crate::command::{ExecCommand, ExecInput, ExecIo, ExecOutput, PART_BYTES};
use crate::driver::{DriverError, TaskId};
use crate::process_id::kill_session;
use crate::supervisor::command::EXEC_FLAG;
use crate::supervisor::files::{EXIT, START_REQUEST};
use crate::terminal::Terminal;

/// Silence after which the output of an ended command is complete, although a process that it left in
/// the background holds the pipe open.
const LAST_WORDS: Duration = Duration::from_millis(500);

impl RawExec {
    pub(super) async fn exec_beside(
        &self,
        id: &TaskId,
        command: ExecCommand,
        io: ExecIo,
    ) -> Result<i32, DriverError> {
        let directory = self.directory(id);
        if !directory.join(START_REQUEST).exists() || directory.join(EXIT).exists() {
            return Err(DriverError::UnknownTask { id: id.clone() });
        }
        let supervisor = &self.settings.supervisor;
        let mut process = Command::new(&supervisor.program);
        process
            .arg0("kafila-task-command")
            .args(&supervisor.args)
            .arg(&directory)
            .arg(EXEC_FLAG)
            .args(&command.line)
            .current_dir("/")
            .kill_on_drop(true);
        let ended = match command.terminal {
            None => piped(process, io).await,
            Some(size) => match Terminal::open(size) {
                Ok((terminal, slave)) => on_terminal(process, terminal, slave, io).await,
                Err(error) => Err(error),
            },
        };
        let status = ended.map_err(|error| DriverError::Exec {
            id: id.clone(),
            reason: error.to_string(),
        })?;
        Ok(exit_code(status))
    }
}

/// The session of a command; its processes are killed when this is dropped before the command's end.
struct Session {
    /// 0: the command has ended. What it left in the background stays, as with a shell.
    leader: AtomicI32,
}

impl Session {
    fn of(child: &Child) -> Self {
        let leader = child.id().and_then(|pid| i32::try_from(pid).ok());
        Self {
            leader: AtomicI32::new(leader.unwrap_or_default()),
        }
    }

    /// Waits for the end of the command.
    async fn wait(
        &self,
        child: &mut Child,
        has_ended: &CancellationToken,
    ) -> io::Result<ExitStatus> {
        let status = child.wait().await;
        self.leader.store(0, Ordering::Relaxed);
        has_ended.cancel();
        status
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // Not reaped yet, so the number is still the command's.
        let leader = *self.leader.get_mut();
        if leader != 0 {
            kill_session(leader);
        }
    }
}

async fn piped(mut command: Command, io: ExecIo) -> io::Result<ExitStatus> {
    let ExecIo { mut input, output } = io;
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn()?;
    let session = Session::of(&child);
    let stdin = child.stdin.take();
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let has_ended = CancellationToken::new();
    let copies = async {
        tokio::join!(
            copy(stdout, &output, ExecOutput::Stdout, &has_ended),
            copy(stderr, &output, ExecOutput::Stderr, &has_ended)
        )
    };
    let running = async { tokio::join!(session.wait(&mut child, &has_ended), copies).0 };
    tokio::select! {
        status = running => status,
        () = output.closed() => Err(caller_gone()),
        never = feed(stdin, &mut input) => match never {},
    }
}

/// Copies output until its end, or until the command has ended and what it left behind is silent.
async fn copy(
    source: Option<impl AsyncRead + Unpin>,
    output: &mpsc::Sender<ExecOutput>,
    part: fn(Vec<u8>) -> ExecOutput,
    has_ended: &CancellationToken,
) {
    let Some(mut source) = source else { return };
    let mut buffer = vec![0; PART_BYTES];
    loop {
        let read = tokio::select! {
            biased;
            read = source.read(&mut buffer) => read,
            () = silence_after(has_ended) => return,
        };
        match read {
            Ok(count) if count > 0 => {
                // A slow reader makes the command wait.
                if output.send(part(buffer[..count].to_vec())).await.is_err() {
                    return;
                }
            }
            _ => return,
        }
    }
}

async fn silence_after(has_ended: &CancellationToken) {
    has_ended.cancelled().await;
    tokio::time::sleep(LAST_WORDS).await;
}

/// Writes input for as long as the command reads it. Never returns.
async fn feed(mut stdin: Option<ChildStdin>, input: &mut mpsc::Receiver<ExecInput>) -> Infallible {
    while let Some(part) = input.recv().await {
        match part {
            ExecInput::Stdin(data) => {
                if let Some(open) = &mut stdin
                    && open.write_all(&data).await.is_err()
                {
                    // The command has closed its input; more of it is dropped.
                    stdin = None;
                }
            }
            ExecInput::EndOfStdin => stdin = None,
            ExecInput::Resize(_) => {}
        }
    }
    drop(stdin);
    std::future::pending().await
}

async fn on_terminal(
    mut command: Command,
    terminal: Terminal,
    slave: std::fs::File,
    io: ExecIo,
) -> io::Result<ExitStatus> {
    let ExecIo { mut input, output } = io;
    command
        .stdin(slave.try_clone()?)
        .stdout(slave.try_clone()?)
        .stderr(slave);
    let mut child = command.spawn()?;
    // The command's end of the terminal closes with the command.
    drop(command);
    let session = Session::of(&child);
    let has_ended = CancellationToken::new();
    let copying = async {
        let mut buffer = vec![0; PART_BYTES];
        loop {
            let read = tokio::select! {
                biased;
                read = terminal.read(&mut buffer) => read,
                () = silence_after(&has_ended) => return,
            };
            match read {
                Ok(count) if count > 0 => {
                    let part = ExecOutput::Stdout(buffer[..count].to_vec());
                    if output.send(part).await.is_err() {
                        return;
                    }
                }
                _ => return,
            }
        }
    };
    let running = async { tokio::join!(session.wait(&mut child, &has_ended), copying).0 };
    tokio::select! {
        status = running => status,
        () = output.closed() => Err(caller_gone()),
        never = type_into(&terminal, &mut input) => match never {},
    }
}

/// Passes input to a terminal. Never returns.
async fn type_into(terminal: &Terminal, input: &mut mpsc::Receiver<ExecInput>) -> Infallible {
    while let Some(part) = input.recv().await {
        // Errors: the terminal is closed, which the end of the command follows.
        let _ = match part {
            ExecInput::Stdin(data) => terminal.write_all(&data).await,
            ExecInput::Resize(size) => terminal.resize(size),
            ExecInput::EndOfStdin => terminal.end_input().await,
        };
    }
    std::future::pending().await
}

fn caller_gone() -> io::Error {
    io::Error::new(io::ErrorKind::BrokenPipe, "its caller is gone")
}

/// Returns the exit code as shells tell it.
fn exit_code(status: ExitStatus) -> i32 {
    match (status.code(), status.signal()) {
        (Some(code), _) => code,
        (None, Some(signal)) => 128 + signal,
        (None, None) => -1,
    }
}
