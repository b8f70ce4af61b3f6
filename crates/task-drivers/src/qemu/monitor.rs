//! The monitor of a machine: a socket of its emulator that takes commands.

use std::io;
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::fcntl::{OFlag, open};
use nix::sys::stat::Mode;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;
use tokio::time::timeout;

use super::command_line::MONITOR;

/// Presses the machine's power button: its system shuts down. Source: the public manual of QEMU.
const SHUT_DOWN: &[u8] = b"system_powerdown\n";
const PROMPT: &[u8] = b"(qemu) ";
/// Timeout of the whole conversation. The emulator answers within milliseconds.
const LIMIT: Duration = Duration::from_secs(5);
/// Largest answer: the greeting has some hundred bytes.
const ANSWER_BYTES: usize = 16 << 10;

/// Asks a machine to shut down, and returns once its emulator has taken the command.
///
/// # Errors
/// The monitor does not answer.
pub(super) async fn shut_down(directory: &Path) -> io::Result<()> {
    let talk = async {
        let mut stream = connect(directory).await?;
        read_prompt(&mut stream).await?;
        stream.write_all(SHUT_DOWN).await?;
        read_prompt(&mut stream).await
    };
    let late = |_| io::Error::new(io::ErrorKind::TimedOut, "no answer of the monitor");
    timeout(LIMIT, talk).await.map_err(late)?
}

/// Connects to the socket by its directory's descriptor, because the path may be longer than a socket's address.
async fn connect(directory: &Path) -> io::Result<UnixStream> {
    let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    let directory = open(directory, flags, Mode::empty())?;
    let path = PathBuf::from(format!("/proc/self/fd/{}", directory.as_raw_fd())).join(MONITOR);
    // The task may have left a link to another program's socket.
    if path.symlink_metadata()?.file_type().is_symlink() {
        return Err(io::Error::other("a link is in the place of the monitor"));
    }
    UnixStream::connect(path).await
}

/// Reads until the monitor waits for a command.
async fn read_prompt(stream: &mut UnixStream) -> io::Result<()> {
    let mut answer = Vec::new();
    while !answer.ends_with(PROMPT) {
        if answer.len() > ANSWER_BYTES {
            return Err(io::Error::other("the monitor sends no prompt"));
        }
        if stream.read_buf(&mut answer).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use tokio::net::UnixListener;

    use super::*;

    /// Answers one conversation as QEMU does, and returns the command.
    async fn answer(listener: UnixListener) -> Vec<u8> {
        let (mut stream, _) = listener.accept().await.unwrap();
        let greeting = b"QEMU 7.2.22 monitor - type 'help' for more information\r\n(qemu) ";
        stream.write_all(greeting).await.unwrap();
        let mut command = Vec::new();
        while !command.ends_with(b"\n") {
            stream.read_buf(&mut command).await.unwrap();
        }
        // An echo of the terminal's, then the next prompt.
        stream
            .write_all(b"s\x1b[K\x1b[Dsystem_powerdown\r\n(qemu) ")
            .await
            .unwrap();
        command
    }

    #[tokio::test]
    async fn a_machine_is_asked_below_a_path_that_is_longer_than_an_address() {
        let base = tempfile::tempdir().unwrap();
        let directory = base.path().join("d".repeat(150));
        std::fs::create_dir(&directory).unwrap();
        // Bound under a short name and moved, because a path of this length cannot be bound.
        let short = base.path().join(MONITOR);
        let listener = UnixListener::bind(&short).unwrap();
        std::fs::rename(&short, directory.join(MONITOR)).unwrap();
        let (asked, command) = tokio::join!(shut_down(&directory), answer(listener));
        asked.unwrap();
        assert_eq!(command, SHUT_DOWN);
    }

    #[tokio::test]
    async fn a_link_to_another_socket_is_refused() {
        let base = tempfile::tempdir().unwrap();
        let other = base.path().join("docker.sock");
        let _listener = UnixListener::bind(&other).unwrap();
        symlink(&other, base.path().join(MONITOR)).unwrap();
        let error = shut_down(base.path()).await.unwrap_err();
        assert!(
            error.to_string().contains("a link is in the place"),
            "{error}"
        );
    }

    #[tokio::test]
    async fn a_monitor_that_closes_has_taken_no_command() {
        let base = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(base.path().join(MONITOR)).unwrap();
        let closing = async { drop(listener.accept().await.unwrap()) };
        let (asked, ()) = tokio::join!(shut_down(base.path()), closing);
        assert_eq!(asked.unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }
}
