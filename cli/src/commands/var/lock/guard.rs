//! Guard of a locked command: a process that ends the command's group after this process was killed.
//!
//! SIGKILL leaves this process no time to end its command, which would run on without the lock. The guard
//! reads a pipe whose other end closes with this process, however it ends. It is no death signal of the
//! command (`PR_SET_PDEATHSIG`), which reaches one process and none of its children: a killed shell leaves
//! the program that it runs.

use std::io::{self, Read as _, Write as _};
use std::path::PathBuf;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};

/// Time between SIGTERM and SIGKILL.
pub(super) const GRACE: Duration = Duration::from_secs(5);
/// Interval of looks whether the group has ended.
pub(super) const POLL: Duration = Duration::from_millis(20);

/// The subcommand of this program that is a guard.
pub(crate) const SUBCOMMAND: &str = "lock-guard";
/// The line after which the group needs no end.
const DISMISSED: &str = "dismissed";

/// A guard. Dropping it, and with it the pipe, without [`Self::dismiss`] ends the group.
pub(super) struct Guard {
    process: Child,
}

impl Guard {
    /// Starts a guard, in a group of its own: no signal of a terminal reaches it.
    ///
    /// # Errors
    /// This program cannot be started a second time.
    pub(super) fn spawn() -> io::Result<Self> {
        use std::os::unix::process::CommandExt as _;
        // The path is the kernel's, which stays valid when an upgrade replaces the file.
        let program = match cfg!(target_os = "linux") {
            true => PathBuf::from("/proc/self/exe"),
            false => std::env::current_exe()?,
        };
        let process = Command::new(program)
            .arg(SUBCOMMAND)
            .env_clear()
            .current_dir("/")
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        Ok(Self { process })
    }

    /// Names the group to end.
    ///
    /// # Errors
    /// The guard is gone.
    pub(super) fn watch(&mut self, group: Pid) -> io::Result<()> {
        self.say(&group.as_raw_nonzero().to_string())
    }

    /// Leaves the group as it is. A guard that is gone needs no word.
    pub(super) fn dismiss(&mut self) {
        let _ = self.say(DISMISSED);
    }

    fn say(&mut self, line: &str) -> io::Result<()> {
        let pipe = self.process.stdin.as_mut();
        writeln!(pipe.ok_or(io::ErrorKind::BrokenPipe)?, "{line}")
    }
}

/// Runs as a guard: waits for the end of the process at the other end of standard input.
pub(crate) fn main() -> ExitCode {
    let mut said = String::new();
    // A text that breaks off is judged as far as it goes.
    let _ = io::stdin().read_to_string(&mut said);
    if let Some(group) = orphan(&said) {
        end(group);
    }
    ExitCode::SUCCESS
}

/// Returns the group that was left behind; `None`: there is none.
fn orphan(said: &str) -> Option<Pid> {
    let mut lines = said.lines();
    let group = lines.next()?.parse().ok().and_then(Pid::from_raw);
    group.filter(|_| !lines.any(|line| line == DISMISSED))
}

/// Ends a group: SIGTERM, then SIGKILL after the grace.
fn end(group: Pid) {
    let _ = kill_process_group(group, Signal::TERM);
    for _ in 0..GRACE.as_millis() / POLL.as_millis() {
        if test_kill_process_group(group).is_err() {
            return;
        }
        std::thread::sleep(POLL);
    }
    let _ = kill_process_group(group, Signal::KILL);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_is_left_behind_unless_it_was_dismissed() {
        let group = |said| orphan(said).map(|pid| pid.as_raw_nonzero().get());
        assert_eq!(group("71\n"), Some(71));
        for said in ["", "71\ndismissed\n", "0\n", "x\n"] {
            assert_eq!(group(said), None, "{said:?}");
        }
    }
}
