//! Link to a supervisor: starting one, and requests over its socket.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde::Serialize;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::time::timeout;

use super::settings::SupervisorCommand;
use crate::supervisor::mode::{ADOPT_FLAG, Mode};
use crate::supervisor::protocol::{MAX_LINE_BYTES, Reply, Request, SOCKET};

/// The file of a supervisor's standard error.
const LOG: &str = "supervisor.log";
/// Timeout for sending a request. The supervisor has a thread that only reads them.
const SEND_LIMIT: Duration = Duration::from_secs(5);
/// Bytes of the log that an error quotes.
const LOG_QUOTE_BYTES: u64 = 512;

/// A connection to a supervisor.
#[derive(Debug)]
pub(super) struct Link {
    reader: BufReader<OwnedReadHalf>,
    writer: OwnedWriteHalf,
}

impl Link {
    /// # Errors
    /// `ConnectionRefused` or `NotFound`: there is no supervisor.
    pub(super) async fn connect(directory: &Path) -> io::Result<Self> {
        let (_open, path) = socket(directory)?;
        let (reader, writer) = timeout(SEND_LIMIT, UnixStream::connect(path))
            .await??
            .into_split();
        Ok(Self {
            reader: BufReader::new(reader),
            writer,
        })
    }

    pub(super) async fn send<T: Serialize>(&mut self, message: &T) -> io::Result<()> {
        let mut line = serde_json::to_vec(message)?;
        line.push(b'\n');
        timeout(SEND_LIMIT, self.writer.write_all(&line)).await?
    }

    pub(super) async fn receive(&mut self, limit: Duration) -> io::Result<Reply> {
        timeout(limit, self.receive_unbounded()).await?
    }

    /// Waits for a reply without a timeout, until the supervisor exits.
    pub(super) async fn receive_unbounded(&mut self) -> io::Result<Reply> {
        let mut line = Vec::new();
        (&mut self.reader)
            .take(MAX_LINE_BYTES)
            .read_until(b'\n', &mut line)
            .await?;
        if line.is_empty() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(serde_json::from_slice(&line)?)
    }
}

/// Sends one request on a connection of its own.
pub(super) async fn ask(directory: &Path, request: &Request, limit: Duration) -> io::Result<Reply> {
    let mut link = Link::connect(directory).await?;
    link.send(request).await?;
    link.receive(limit).await
}

/// Starts a supervisor. It inherits only its socket.
pub(super) fn spawn_supervisor(
    command: &SupervisorCommand,
    directory: &Path,
    mode: Mode,
) -> io::Result<Child> {
    let listener = listen(directory)?;
    let log = OpenOptions::new()
        .create(true)
        .append(true)
        .mode(0o600)
        .open(directory.join(LOG))?;
    let mut supervisor = Command::new(&command.program);
    supervisor
        .arg0("kafila-task-supervisor")
        .args(&command.args)
        .arg(directory)
        .args((mode == Mode::Adopt).then_some(ADOPT_FLAG))
        .current_dir("/")
        .stdin(Stdio::from(OwnedFd::from(listener)))
        .stdout(Stdio::null())
        .stderr(Stdio::from(log));
    supervisor.spawn()
}

/// Creates the listening socket for the supervisor. Connections queue until it accepts.
fn listen(directory: &Path) -> io::Result<UnixListener> {
    let (_open, path) = socket(directory)?;
    match fs::remove_file(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let listener = UnixListener::bind(&path)?;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600))?;
    Ok(listener)
}

/// Returns a path to the socket within the limit of 108 bytes, however deep the directory. The path
/// is valid while the returned directory is open.
fn socket(directory: &Path) -> io::Result<(File, PathBuf)> {
    let open = File::open(directory)?;
    let path = PathBuf::from(format!("/proc/self/fd/{}/{SOCKET}", open.as_raw_fd()));
    Ok((open, path))
}

/// Returns the beginning of a failed supervisor's log.
pub(super) fn supervisor_log(directory: &Path) -> String {
    use std::io::Read;
    let mut text = String::new();
    if let Ok(file) = File::open(directory.join(LOG)) {
        let _ = file.take(LOG_QUOTE_BYTES).read_to_string(&mut text);
    }
    text.trim().to_owned()
}
