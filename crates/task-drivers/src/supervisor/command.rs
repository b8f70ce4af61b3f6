//! A command beside a task: a process of the agent enters the task's control group, session rules and
//! network, then becomes the command. For an isolated task it stays, as the parent of the command, which
//! alone is in the task's namespaces. Standard input and output are the caller's.

use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::io::{self, IsTerminal as _};
use std::os::unix::fs::fchown;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::Path;
use std::process::{Command, ExitCode, ExitStatus};

use nix::unistd::setsid;

use super::files::{self, START_REQUEST, STATE, StartRequest, State};
use super::isolation::enter;
use super::{network, own_program, run};
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
    let entered = enter_task(directory);
    let (request, state) = match entered {
        Ok(entered) => entered,
        Err(error) => {
            eprintln!("kafila: cannot enter the task: {error}");
            return ExitCode::from(CANNOT_RUN);
        }
    };
    let mut command = Command::new(&program);
    command
        .args(line)
        .env_clear()
        .envs(&request.env)
        .env(MARKER, &request.task_id)
        .current_dir(&request.work_dir);
    if io::stdin().is_terminal() && !request.env.contains_key("TERM") {
        command.env("TERM", TERM);
    }
    let error = match &request.isolation {
        Some(isolation) => {
            let spawned = enter::spawn(&request, isolation, state.task, command);
            match spawned.and_then(|mut child| child.wait()) {
                Ok(status) => return exit_code(status),
                Err(error) => error,
            }
        }
        None => {
            if let Some(user) = request.user {
                command.uid(user.uid).gid(user.gid);
            }
            command.exec()
        }
    };
    eprintln!("kafila: cannot run {}: {error}", program.display());
    ExitCode::from(match error.kind() {
        io::ErrorKind::NotFound => NOT_FOUND,
        _ => CANNOT_RUN,
    })
}

/// Passes the end of the command on, a signal as shells tell it.
fn exit_code(status: ExitStatus) -> ExitCode {
    let signal = status.signal().map(|signal| 128 + signal);
    let code = status.code().or(signal).unwrap_or(i32::from(CANNOT_RUN));
    ExitCode::from(u8::try_from(code).unwrap_or(u8::MAX))
}

/// Moves this process, which has one thread, to where the task's processes are.
fn enter_task(directory: &Path) -> io::Result<(StartRequest, State)> {
    let gone = || io::Error::new(io::ErrorKind::NotFound, "it does not run");
    let request: StartRequest = files::read(directory, START_REQUEST)?.ok_or_else(gone)?;
    let state: State = files::read(directory, STATE)?.ok_or_else(gone)?;
    if request.isolation.is_some() {
        own_program::run_read_only()?;
    }
    run::reset_signals()?;
    // A session of its own: the agent kills all of it, and a terminal can belong to it.
    setsid()?;
    if io::stdin().is_terminal() {
        // The first terminal that the leader of a session opens becomes the session's.
        drop(OpenOptions::new().read(true).open("/proc/self/fd/0")?);
    }
    let slice = request.cgroup_slice.as_deref().filter(|_| state.has_cgroup);
    let cgroup = slice.map(|slice| TaskCgroup::at(slice, &request.cgroup_name));
    if let Some(cgroup) = &cgroup {
        cgroup.enter()?;
    }
    let needs_limits = request.isolation.as_ref().is_some_and(|it| it.needs_limits);
    if needs_limits && cgroup.is_none() {
        return Err(io::Error::other("it has no control group, which limits it"));
    }
    let cores = &request.limits.cores;
    if !cores.is_empty() && !cgroup.is_some_and(|cgroup| cgroup.confine(cores)) {
        // Not restored: the command inherits it.
        std::mem::forget(affinity::enter(cores)?);
    }
    let _ = fs::write(
        "/proc/self/oom_score_adj",
        request.oom_score_adj.to_string(),
    );
    // An isolated task's network is one of its namespaces.
    if let Some(network) = request
        .network
        .as_ref()
        .filter(|_| request.isolation.is_none())
    {
        network::enter(network)?;
    }
    if let Some(user) = request.user {
        // A command may open its own output again, as /dev/stdout or /dev/tty.
        let (uid, gid) = (Some(user.uid), Some(user.gid));
        fchown(io::stdin(), uid, gid)?;
        fchown(io::stdout(), uid, gid)?;
        fchown(io::stderr(), uid, gid)?;
    }
    Ok((request, state))
}
