//! Reaping: waits for the task's process, then kills the task's remaining processes.

use std::io;
use std::thread;
use std::time::Duration;

use model::ExitResult;
use nix::errno::Errno;
use nix::sys::signal::{Signal, kill, killpg};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid, waitpid};
use nix::unistd::Pid;

use super::shared::{Phase, Shared};
use crate::cgroup::TaskCgroup;
use crate::process_id::{self, ProcessId};

/// Poll interval for a process that is not a child. Adopted tasks are rare, and the restart delay
/// hides 100 ms.
const ADOPTED_POLL_INTERVAL: Duration = Duration::from_millis(100);
/// Pause between sweeps for killed processes, most of which are gone at once.
const SWEEP_INTERVAL: Duration = Duration::from_millis(5);
/// The longest such pause, for processes in uninterruptible sleep.
const SWEEP_INTERVAL_MAX: Duration = Duration::from_millis(500);

/// The processes that have to be gone before the task counts as ended.
pub(super) struct Reaped {
    pub(super) process: ProcessId,
    pub(super) task_id: String,
    /// `false` for an adopted task, whose exit code cannot be read.
    pub(super) is_child: bool,
    pub(super) cgroup: Option<TaskCgroup>,
}

/// Waits for the task's end; returns when none of its processes is left.
pub(super) fn wait(reaped: &Reaped, shared: &Shared) -> io::Result<ExitResult> {
    let exit = if reaped.is_child {
        wait_for_child(reaped.process.pid, shared)?
    } else {
        wait_for_adopted(reaped.process, shared)
    };
    reaped.sweep();
    Ok(exit)
}

fn wait_for_child(task: i32, shared: &Shared) -> io::Result<ExitResult> {
    loop {
        // Peeked first and reaped later, so that no signal goes to a reused pid.
        let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT;
        let status = match waitid(Id::All, flags) {
            Err(Errno::EINTR) => continue,
            status => status?,
        };
        let Some(pid) = status.pid() else { continue };
        if pid.as_raw() != task {
            // An orphan of the task that ended by itself.
            let _ = waitpid(pid, None);
            continue;
        }
        shared.change(|facts| {
            facts.task = None;
            facts.phase = Phase::Ending;
        });
        return Ok(exit_result(waitpid(pid, None)?));
    }
}

fn wait_for_adopted(process: ProcessId, shared: &Shared) -> ExitResult {
    while process.is_alive() {
        thread::sleep(ADOPTED_POLL_INTERVAL);
    }
    shared.change(|facts| {
        facts.task = None;
        facts.phase = Phase::Ending;
    });
    ExitResult {
        code: -1,
        message: "exit code unknown: the task's supervisor was killed".to_owned(),
        ..ExitResult::default()
    }
}

/// A process that a signal ended gets the exit code of shells: 128 plus the signal number.
fn exit_result(status: WaitStatus) -> ExitResult {
    match status {
        WaitStatus::Exited(_, code) => ExitResult {
            code,
            ..ExitResult::default()
        },
        WaitStatus::Signaled(_, signal, _) => {
            let signal = signal as i32;
            ExitResult {
                code: 128 + signal,
                signal,
                ..ExitResult::default()
            }
        }
        other => ExitResult {
            code: -1,
            message: format!("unexpected end: {other:?}"),
            ..ExitResult::default()
        },
    }
}

impl Reaped {
    /// Sends SIGKILL to every process that may belong to the task.
    pub(super) fn kill_everything(&self) {
        if let Some(cgroup) = &self.cgroup {
            let _ = cgroup.kill();
        }
        let _ = self.process.signal(Signal::SIGKILL);
        if self.is_child {
            let own = i32::try_from(std::process::id()).unwrap_or(i32::MAX);
            for pid in process_id::descendants(own) {
                let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
            }
        } else if self.cgroup.is_none() {
            // The id of an empty process group may be reused, so each member is looked up.
            for pid in process_id::of_task(&self.task_id, Some(self.process.pid)) {
                let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
            }
        }
    }

    /// Kills the task's remaining processes until none is left. Does not return earlier: a task with
    /// an unkillable process has not ended.
    fn sweep(&self) {
        let mut pause = SWEEP_INTERVAL;
        while !self.is_gone() {
            self.kill_everything();
            thread::sleep(pause);
            pause = (pause * 2).min(SWEEP_INTERVAL_MAX);
        }
    }

    /// Returns whether no process of the task is left; reaps the zombies.
    fn is_gone(&self) -> bool {
        if self.cgroup.as_ref().is_some_and(TaskCgroup::is_populated) {
            return false;
        }
        if self.is_child {
            // Every process of the task is a descendant: the subreaper inherits orphans.
            loop {
                match waitpid(Pid::from_raw(-1), Some(WaitPidFlag::WNOHANG)) {
                    Err(Errno::ECHILD) => return true,
                    Ok(WaitStatus::StillAlive) => return false,
                    Ok(_) | Err(_) => {}
                }
            }
        }
        self.cgroup.is_some()
            || process_id::of_task(&self.task_id, Some(self.process.pid)).is_empty()
    }
}

/// Sends SIGKILL to the task's process and its group. The sweep kills the rest.
pub(super) fn kill_group(process: ProcessId) {
    if process.is_alive() {
        let _ = kill(Pid::from_raw(process.pid), Signal::SIGKILL);
        let _ = killpg(Pid::from_raw(process.pid), Signal::SIGKILL);
    }
}
