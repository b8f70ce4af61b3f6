//! Process ids that are safe against pid reuse, and the search for the processes of a task.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use procfs::process::{Process, all_processes};
use serde::{Deserialize, Serialize};

/// The environment variable that marks every process of a task, independent of parents and process
/// groups; its value is the task's id.
pub(crate) const MARKER: &str = "KAFILA_TASK_ID";

/// A process of the current boot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessId {
    pub pid: i32,
    /// Clock ticks from boot to the process's start; differs when the pid is reused.
    pub start_ticks: u64,
}

impl ProcessId {
    /// Looks the process up, zombies included; `None`: there is none.
    pub fn of(pid: i32) -> Option<Self> {
        let stat = Process::new(pid).ok()?.stat().ok()?;
        Some(Self {
            pid,
            start_ticks: stat.starttime,
        })
    }

    /// Returns whether the process runs; a zombie does not.
    pub fn is_alive(self) -> bool {
        let stat = Process::new(self.pid).and_then(|process| process.stat());
        stat.is_ok_and(|stat| stat.starttime == self.start_ticks && !is_dead(stat.state))
    }

    /// Sends a signal, unless the process is gone. Check and signal are not atomic; only the parent,
    /// which can delay the reuse of the pid, signals without that race.
    ///
    /// # Errors
    /// The process is gone, or another user's.
    pub fn signal(self, signal: Signal) -> nix::Result<()> {
        if self.is_alive() {
            kill(Pid::from_raw(self.pid), signal)
        } else {
            Err(nix::Error::ESRCH)
        }
    }
}

/// Returns the id of the current boot.
pub fn boot_id() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id")
        .map(|text| text.trim().to_owned())
        .unwrap_or_default()
}

/// Lists the descendants of `ancestor`.
pub(crate) fn descendants(ancestor: i32) -> Vec<i32> {
    let parents: Vec<(i32, i32)> = stats().map(|stat| (stat.pid, stat.ppid)).collect();
    let mut found = vec![ancestor];
    let mut position = 0;
    while position < found.len() {
        let parent = found[position];
        found.extend(
            parents
                .iter()
                .filter(|(_, ppid)| *ppid == parent)
                .map(|(pid, _)| *pid),
        );
        position += 1;
    }
    found.remove(0);
    found
}

/// Lists the processes with the marker of this task, and the members of its process group.
pub(crate) fn of_task(task_id: &str, group: Option<i32>) -> Vec<i32> {
    let mark = format!("{MARKER}={task_id}");
    let own = std::process::id();
    stats()
        .filter(|stat| u32::try_from(stat.pid).ok() != Some(own))
        .filter(|stat| !is_dead(stat.state))
        .filter(|stat| group == Some(stat.pgrp) || is_marked(stat.pid, &mark))
        .map(|stat| stat.pid)
        .collect()
}

/// Kills every process of a session, given the id of its leader.
pub fn kill_session(leader: i32) {
    let members = stats().filter(|stat| stat.session == leader && !is_dead(stat.state));
    for pid in members.map(|stat| stat.pid) {
        // One that has ended meanwhile is not an error.
        let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
    }
}

fn is_dead(state: char) -> bool {
    matches!(state, 'Z' | 'X')
}

fn is_marked(pid: i32, mark: &str) -> bool {
    std::fs::read(format!("/proc/{pid}/environ")).is_ok_and(|environ| {
        environ
            .split(|byte| *byte == 0)
            .any(|var| var == mark.as_bytes())
    })
}

/// Returns the id of the task in a process's environment; `None`: it has none, or is another user's.
pub(crate) fn marker_of(pid: i32) -> Option<String> {
    let environ = std::fs::read(format!("/proc/{pid}/environ")).ok()?;
    let name = format!("{MARKER}=");
    let mut variables = environ.split(|byte| *byte == 0);
    let value = variables.find_map(|variable| variable.strip_prefix(name.as_bytes()))?;
    String::from_utf8(value.to_vec()).ok()
}

fn stats() -> impl Iterator<Item = procfs::process::Stat> {
    all_processes()
        .into_iter()
        .flatten()
        .filter_map(|process| process.ok()?.stat().ok())
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_process_is_known_by_number_and_start() {
        let mut child = Command::new("sleep")
            .arg("60")
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        let pid = i32::try_from(child.id()).unwrap();
        let process = ProcessId::of(pid).unwrap();
        assert!(process.is_alive());
        let other = ProcessId {
            start_ticks: process.start_ticks + 1,
            ..process
        };
        assert!(!other.is_alive());
        assert_eq!(other.signal(Signal::SIGKILL), Err(nix::Error::ESRCH));
        assert!(descendants(i32::try_from(std::process::id()).unwrap()).contains(&pid));
        process.signal(Signal::SIGKILL).unwrap();
        child.wait().unwrap();
        assert!(!process.is_alive());
    }

    #[test]
    fn a_task_is_found_by_its_mark() {
        let id = format!("probe-{}", std::process::id());
        let mut child = Command::new("sleep")
            .arg("60")
            .env(MARKER, &id)
            .spawn()
            .unwrap();
        let pid = i32::try_from(child.id()).unwrap();
        // The kernel shows the environment of a new program a moment after its start.
        for _ in 0..1_000 {
            if !of_task(&id, None).is_empty() {
                break;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        assert_eq!(of_task(&id, None), [pid]);
        assert!(of_task("another-task", None).is_empty());
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(of_task(&id, None).is_empty());
    }
}
