//! A command beside a task: a process of the agent enters the task's control group, session rules and
//! network, then becomes the command. Standard input and output are the caller's.

use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::io::{self, IsTerminal as _};
use std::os::unix::fs::fchown;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, ExitCode};

use nix::unistd::setsid;

use super::files::{self, INTENT, Intent, STATE, State};
use super::{network, run};
use crate::affinity;
use crate::cgroup::TaskCgroup;
use crate::process_id::MARKER;

/// The flag before the command line.
pub(crate) const EXEC_FLAG: &str = "--exec";
/// Exit code: the command cannot be run. Source: POSIX shells.
const CANNOT_RUN: u8 = 126;
/// Exit code: there is no such program. Source: POSIX shells.
const NOT_FOUND: u8 = 127;
/// Value of `TERM` in a terminal, unless the task has one: what every terminal emulator understands.
const TERM: &str = "xterm";

/// Becomes the command `line` beside the task of `directory`; returns only if that fails.
pub(super) fn main(directory: &Path, line: impl Iterator<Item = OsString>) -> ExitCode {
    let mut line = line;
    let Some(program) = line.next() else {
        eprintln!("kafila: the command is missing");
        return ExitCode::from(CANNOT_RUN);
    };
    let entered = enter(directory);
    let intent = match entered {
        Ok(intent) => intent,
        Err(error) => {
            eprintln!("kafila: cannot enter the task: {error}");
            return ExitCode::from(CANNOT_RUN);
        }
    };
    let mut command = Command::new(&program);
    command
        .args(line)
        .env_clear()
        .envs(&intent.env)
        .env(MARKER, &intent.task_id)
        .current_dir(&intent.work_dir);
    if io::stdin().is_terminal() && !intent.env.contains_key("TERM") {
        command.env("TERM", TERM);
    }
    if let Some(user) = intent.user {
        command.uid(user.uid).gid(user.gid);
    }
    let error = command.exec();
    eprintln!("kafila: cannot run {}: {error}", program.display());
    ExitCode::from(match error.kind() {
        io::ErrorKind::NotFound => NOT_FOUND,
        _ => CANNOT_RUN,
    })
}

/// Moves this process, which has one thread, to where the task's processes are.
fn enter(directory: &Path) -> io::Result<Intent> {
    let gone = || io::Error::new(io::ErrorKind::NotFound, "it does not run");
    let intent: Intent = files::read(directory, INTENT)?.ok_or_else(gone)?;
    let state: State = files::read(directory, STATE)?.ok_or_else(gone)?;
    run::reset_signals()?;
    // A session of its own: the agent kills all of it, and a terminal can belong to it.
    setsid()?;
    if io::stdin().is_terminal() {
        // The first terminal that the leader of a session opens becomes the session's.
        drop(OpenOptions::new().read(true).open("/proc/self/fd/0")?);
    }
    let slice = intent.cgroup_slice.as_deref().filter(|_| state.has_cgroup);
    let cgroup = slice.map(|slice| TaskCgroup::at(slice, &intent.cgroup_name));
    if let Some(cgroup) = &cgroup {
        cgroup.enter()?;
    }
    let cores = &intent.limits.cores;
    if !cores.is_empty() && !cgroup.is_some_and(|cgroup| cgroup.confine(cores)) {
        // Not restored: the command inherits it.
        std::mem::forget(affinity::enter(cores)?);
    }
    let _ = fs::write("/proc/self/oom_score_adj", intent.oom_score_adj.to_string());
    if let Some(network) = &intent.network {
        network::enter(network)?;
    }
    if let Some(user) = intent.user {
        // A command may open its own output again, as /dev/stdout or /dev/tty.
        let (uid, gid) = (Some(user.uid), Some(user.gid));
        fchown(io::stdin(), uid, gid)?;
        fchown(io::stdout(), uid, gid)?;
        fchown(io::stderr(), uid, gid)?;
    }
    Ok(intent)
}
