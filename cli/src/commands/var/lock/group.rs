//! Process group of a command: started, signaled, and ended with its children.

use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;

use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};
use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep};

use super::guard::{GRACE, Guard, POLL};
use crate::exit::Exit;

pub(super) struct Group {
    child: Child,
    pid: Option<Pid>,
    guard: Guard,
}

impl Group {
    /// Starts a command as the leader of a new group, with this process's input and output, and its guard.
    ///
    /// # Errors
    /// One of them cannot be run.
    pub(super) fn spawn(
        words: &[String],
        has_shell: bool,
        lock_id: &str,
        path: &str,
    ) -> io::Result<Self> {
        let mut command = if has_shell {
            let mut shell = Command::new("/bin/sh");
            shell.arg("-c").arg(words.join(" "));
            shell
        } else {
            let (program, args) = words.split_first().ok_or(io::ErrorKind::InvalidInput)?;
            let mut command = Command::new(program);
            command.args(args);
            command
        };
        command
            .process_group(0)
            .env("KAFILA_LOCK_ID", lock_id)
            .env("KAFILA_LOCK_PATH", path);
        let mut guard = Guard::spawn()?;
        let child = command.spawn()?;
        let pid = child.id().and_then(|id| i32::try_from(id).ok());
        let pid = pid.and_then(Pid::from_raw);
        let watched = pid.map_or(Ok(()), |pid| guard.watch(pid));
        let group = Self { child, pid, guard };
        if watched.is_err() {
            // It would run on without a guard.
            group.signal(Signal::KILL);
        }
        watched.map(|()| group)
    }

    /// Waits for the command, not for its children.
    pub(super) async fn wait(&mut self) -> io::Result<ExitStatus> {
        let ended = self.child.wait().await;
        self.guard.dismiss();
        ended
    }

    /// Signals the group. A group that is gone needs no signal.
    pub(super) fn signal(&self, signal: Signal) {
        if let Some(pid) = self.pid {
            let _ = kill_process_group(pid, signal);
        }
    }

    /// Ends the command and its children: SIGTERM, then SIGKILL after the grace.
    pub(super) async fn end(&mut self) {
        self.signal(Signal::TERM);
        let until = Instant::now() + GRACE;
        while self.is_alive() && Instant::now() < until {
            sleep(POLL).await;
        }
        self.signal(Signal::KILL);
        // SIGKILL cannot be held up, but for a process in an uninterruptible call.
        let until = Instant::now() + GRACE;
        while self.is_alive() && Instant::now() < until {
            sleep(POLL).await;
        }
        self.guard.dismiss();
    }

    /// Returns whether a process of the group is left; reaps the leader.
    fn is_alive(&mut self) -> bool {
        let _ = self.child.try_wait();
        self.pid
            .is_some_and(|pid| test_kill_process_group(pid).is_ok())
    }
}

/// Returns the exit code for a command that ended, as shells have it.
pub(super) fn exit_of(status: ExitStatus) -> Exit {
    let number = status
        .code()
        .or_else(|| status.signal().map(|signal| 128 + signal));
    let number = number.and_then(|number| u8::try_from(number).ok());
    match number {
        Some(0) => Exit::Success,
        number => Exit::OfCommand(number.unwrap_or(u8::MAX)),
    }
}

/// Returns the exit code for a command that was not started, as shells have it.
pub(super) fn code_of(error: &io::Error) -> u8 {
    match error.kind() {
        io::ErrorKind::NotFound => 127,
        _ => 126,
    }
}
