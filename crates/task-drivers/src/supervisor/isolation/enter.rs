//! A command inside a running isolated task: it enters the task's namespaces, and keeps no right that the
//! task does not have.

use std::io::{self, IsTerminal as _};
use std::os::fd::{FromRawFd as _, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command};

use nix::errno::Errno;
use nix::libc;
use nix::sched::{CloneFlags, setns};
use nix::sys::prctl;
use nix::sys::signal::{SigSet, SigmaskHow, Signal, sigprocmask};
use nix::unistd::getpgrp;
use rustix::process::Pid;
use rustix::termios::tcsetpgrp;

use super::failure::because;
use super::privileges::{self, Privileges};
use crate::process_id::ProcessId;
use crate::supervisor::files::{Isolation, StartRequest};

/// Starts `command` in the namespaces of the task whose first process is `task`. Its process group is its
/// own, and has the terminal if there is one.
///
/// The calling process must have one thread. It moves into all of the namespaces but the one of process
/// ids, which begins with its child.
///
/// # Errors
/// The task has ended, or the step that failed.
pub(in crate::supervisor) fn spawn(
    request: &StartRequest,
    isolation: &Isolation,
    task: ProcessId,
    mut command: Command,
) -> io::Result<Child> {
    let namespaces = open(task)?;
    let all = CloneFlags::CLONE_NEWNS
        | CloneFlags::CLONE_NEWIPC
        | CloneFlags::CLONE_NEWNET
        | CloneFlags::CLONE_NEWPID;
    setns(namespaces, all)
        .map_err(|error| because("cannot enter the task's namespaces", &error.into()))?;
    let privileges = Privileges::new(request, isolation)?;
    let (mut failure, report) = io::pipe()?;
    let has_terminal = io::stdin().is_terminal();
    let become_command = move || {
        if has_terminal {
            take_terminal()?;
        }
        privileges.give_up(&report)?;
        // The kernel clears it when the user changes.
        Ok(prctl::set_pdeathsig(Signal::SIGKILL)?)
    };
    command.process_group(0);
    #[expect(unsafe_code, reason = "code between fork and exec is unsafe")]
    // SAFETY: it makes system calls alone, and allocates nothing.
    unsafe {
        command.pre_exec(become_command)
    };
    let spawned = command.spawn();
    // Closes the write end, so that the read ends.
    drop(command);
    spawned.map_err(|error| privileges::name(&mut failure, error))
}

/// Returns a handle of the process, which no process with a reused number can take over.
fn open(task: ProcessId) -> io::Result<OwnedFd> {
    #[expect(unsafe_code, reason = "no library has this system call")]
    // SAFETY: the arguments are numbers.
    let opened = unsafe { libc::syscall(libc::SYS_pidfd_open, task.pid, 0) };
    let opened = Errno::result(opened)?;
    let number = i32::try_from(opened).map_err(io::Error::other)?;
    #[expect(unsafe_code, reason = "the kernel returns a number")]
    // SAFETY: the number is of a file that was opened just now, and has no other owner.
    let handle = unsafe { OwnedFd::from_raw_fd(number) };
    if !task.is_alive() {
        return Err(io::Error::new(io::ErrorKind::NotFound, "it has ended"));
    }
    Ok(handle)
}

/// Makes the calling process's group the one that the terminal's keys reach. A group in the background is
/// stopped for this by a signal, which is held back.
fn take_terminal() -> io::Result<()> {
    let mut held = SigSet::empty();
    held.add(Signal::SIGTTOU);
    let mut before = SigSet::empty();
    sigprocmask(SigmaskHow::SIG_BLOCK, Some(&held), Some(&mut before))?;
    let group = Pid::from_raw(getpgrp().as_raw());
    let taken = group.map_or(Ok(()), |group| tcsetpgrp(io::stdin(), group));
    sigprocmask(SigmaskHow::SIG_SETMASK, Some(&before), None)?;
    Ok(taken?)
}
