//! The process of a plugin: its start up to the handshake, and its end.
//!
//! The process outlives the agent if tasks need it. Its output therefore goes to named pipes in its directory,
//! of which it holds both ends: without a reader it is not ended by a broken pipe, and the next agent reads on.

use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::signal::Signal;
use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use task_drivers::ProcessId;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};
use tokio::net::unix::pipe;
use tokio::process::{Child, Command};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::handshake::{self, LINE_BYTES_MAX};
use crate::output::{Tail, follow};

const STDOUT: &str = "stdout";
const STDERR: &str = "stderr";
const SOCKETS: &str = "sockets";
/// Interval of looks at a process that an earlier agent started.
const LOOK_INTERVAL: Duration = Duration::from_millis(500);
/// Time for the last lines of a process that has ended.
const LAST_LINES: Duration = Duration::from_millis(200);
/// Time for a killed process to end.
const KILL_LIMIT: Duration = Duration::from_secs(5);

/// The program of a plugin.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    /// The file's name, for logs.
    pub(crate) file: String,
    pub(crate) path: PathBuf,
    pub(crate) args: Vec<String>,
    /// The plugin's directory below the agent's state.
    pub(crate) directory: PathBuf,
}

#[derive(Debug)]
pub(crate) struct Process {
    pub(crate) id: ProcessId,
    pub(crate) socket: PathBuf,
    /// `None`: an earlier agent started it.
    child: Option<Child>,
}

/// Starts a process and waits for its handshake. Its output is logged until `gone`.
///
/// # Errors
/// The reason why it is no plugin, or of no use.
pub(crate) async fn launch(
    program: &Program,
    limit: Duration,
    gone: &CancellationToken,
) -> Result<Process, String> {
    let (mut child, output) =
        spawn(program).map_err(|error| format!("cannot start it: {error}"))?;
    let tail = Tail::default();
    let stderr = follow_until(
        program.file.clone(),
        output.stderr,
        tail.clone(),
        gone.clone(),
    );
    let stderr = tokio::spawn(stderr);
    let mut stdout = BufReader::new(output.stdout);
    let shaken = timeout(limit, shake_hands(&mut child, &mut stdout)).await;
    let shaken = shaken.unwrap_or_else(|_| {
        Err(format!(
            "there is no handshake within {} s",
            limit.as_secs_f32()
        ))
    });
    let found = shaken.and_then(|socket| {
        let pid = child.id().and_then(|pid| i32::try_from(pid).ok());
        let id = pid.and_then(ProcessId::of);
        let id = id.ok_or_else(|| "it has ended after its handshake".to_owned())?;
        Ok((id, socket))
    });
    match found {
        Ok((id, socket)) => {
            tokio::spawn(follow_until(
                program.file.clone(),
                stdout,
                tail,
                gone.clone(),
            ));
            Ok(Process {
                id,
                socket,
                child: Some(child),
            })
        }
        Err(problem) => {
            // It may have ended.
            let _ = child.kill().await;
            sleep(LAST_LINES).await;
            stderr.abort();
            Err(match tail.text() {
                said if said.is_empty() => problem,
                said => format!("{problem}; it printed: {said}"),
            })
        }
    }
}

/// Finds the process that an earlier agent started.
///
/// # Errors
/// It has ended.
pub(crate) fn find(
    program: &Program,
    id: ProcessId,
    socket: PathBuf,
    gone: &CancellationToken,
) -> Result<Process, String> {
    if !id.is_alive() {
        return Err("its process has ended".to_owned());
    }
    if let Ok(output) = open_output(&program.directory) {
        for source in [output.stdout, output.stderr] {
            tokio::spawn(follow_until(
                program.file.clone(),
                source,
                Tail::default(),
                gone.clone(),
            ));
        }
    }
    Ok(Process {
        id,
        socket,
        child: None,
    })
}

impl Process {
    /// Returns when the process has ended, with the reason.
    pub(crate) async fn ended(&mut self) -> String {
        match &mut self.child {
            Some(child) => match child.wait().await {
                Ok(status) => format!("its process has ended: {status}"),
                Err(error) => format!("its process is lost: {error}"),
            },
            None => {
                while self.id.is_alive() {
                    sleep(LOOK_INTERVAL).await;
                }
                "its process has ended".to_owned()
            }
        }
    }

    /// Kills the process, and waits for its end.
    pub(crate) async fn kill(&mut self) {
        // It may have ended.
        let _ = self.id.signal(Signal::SIGKILL);
        let _ = timeout(KILL_LIMIT, self.ended()).await;
    }
}

struct Output {
    stdout: pipe::Receiver,
    stderr: pipe::Receiver,
}

fn spawn(program: &Program) -> io::Result<(Child, Output)> {
    let directory = &program.directory;
    let sockets = directory.join(SOCKETS);
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&sockets)?;
    for name in [STDOUT, STDERR] {
        // Another process of the plugin may still write to the old one.
        match fs::remove_file(directory.join(name)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        match mkfifo(&directory.join(name), Mode::S_IRUSR | Mode::S_IWUSR) {
            Ok(()) | Err(Errno::EEXIST) => {}
            Err(error) => return Err(error.into()),
        }
    }
    let output = open_output(directory)?;
    let end = |name: &str| {
        let mut options = OpenOptions::new();
        options.read(true).write(true).open(directory.join(name))
    };
    let own = std::env::vars_os();
    // Settings of the agent may hold its secrets.
    let own = own.filter(|(name, _)| !name.as_encoded_bytes().starts_with(b"KAFILA_"));
    let child = Command::new(&program.path)
        .args(&program.args)
        .env_clear()
        .envs(own)
        .envs(handshake::environment(&sockets))
        // Signals of the agent's terminal are not for it.
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(end(STDOUT)?)
        .stderr(end(STDERR)?)
        .spawn()?;
    Ok((child, output))
}

fn open_output(directory: &Path) -> io::Result<Output> {
    let open = |name: &str| {
        let mut options = pipe::OpenOptions::new();
        options.read_write(true).open_receiver(directory.join(name))
    };
    Ok(Output {
        stdout: open(STDOUT)?,
        stderr: open(STDERR)?,
    })
}

/// Waits for the line of the handshake.
async fn shake_hands(
    child: &mut Child,
    stdout: &mut BufReader<pipe::Receiver>,
) -> Result<PathBuf, String> {
    let most = u64::try_from(LINE_BYTES_MAX).unwrap_or(u64::MAX);
    let mut line = Vec::new();
    let mut bounded = stdout.take(most + 1);
    tokio::select! {
        biased;
        read = bounded.read_until(b'\n', &mut line) => {
            read.map_err(|error| format!("cannot read its handshake: {error}"))?;
        }
        status = child.wait() => {
            let status = status.map_or_else(|error| error.to_string(), |status| status.to_string());
            return Err(format!("it has ended without a handshake: {status}"));
        }
    }
    if line.len() > LINE_BYTES_MAX {
        return Err(format!(
            "it is no plugin of Nomad's protocol: its first line has more than {LINE_BYTES_MAX} bytes"
        ));
    }
    handshake::parse(&String::from_utf8_lossy(&line))
}

/// Logs output until the process is gone, and what it printed last.
async fn follow_until(
    file: String,
    source: impl tokio::io::AsyncRead + Unpin,
    tail: Tail,
    gone: CancellationToken,
) {
    let last = async {
        gone.cancelled().await;
        sleep(LAST_LINES).await;
    };
    tokio::select! {
        () = follow(&file, source, &tail) => {}
        () = last => {}
    }
}
