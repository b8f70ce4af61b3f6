//! Processes of the run's machine.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::jobs::MARK;

/// A process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    pub pid: i32,
    parent: i32,
    /// Words separated by spaces.
    pub command: String,
}

/// The main process of a task.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TaskProcess {
    pub job: String,
    pub task: String,
    pub alloc_id: String,
    pub pid: i32,
}

/// Lists all processes. Those that end meanwhile are left out, and so are those that have ended.
pub fn processes() -> Vec<Found> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_string_lossy().parse().ok());
    pids.filter_map(process).collect()
}

fn process(pid: i32) -> Option<Found> {
    let path = PathBuf::from(format!("/proc/{pid}"));
    let stat = fs::read_to_string(path.join("stat")).ok()?;
    let (_, rest) = stat.rsplit_once(") ")?;
    let mut fields = rest.split(' ');
    let (state, parent) = (fields.next()?, fields.next()?.parse().ok()?);
    let command = fs::read(path.join("cmdline")).ok()?;
    let command = String::from_utf8_lossy(&command).replace('\0', " ");
    (state != "Z").then_some(Found {
        pid,
        parent,
        command,
    })
}

/// Returns the main processes of tasks, in order.
pub fn task_processes(all: &[Found]) -> Vec<TaskProcess> {
    let is_task =
        |found: &&Found| found.command.starts_with("/bin/sh -c : ") && found.command.contains(MARK);
    let tasks: Vec<&Found> = all.iter().filter(is_task).collect();
    let pids: BTreeSet<i32> = tasks.iter().map(|found| found.pid).collect();
    // A child has its parent's command line until it has become another program.
    let main = tasks.iter().filter(|found| !pids.contains(&found.parent));
    let mut found: Vec<TaskProcess> = main.filter_map(|found| named(found.pid)).collect();
    found.sort();
    found
}

fn named(pid: i32) -> Option<TaskProcess> {
    let environment = fs::read(format!("/proc/{pid}/environ")).ok()?;
    let environment = String::from_utf8_lossy(&environment).into_owned();
    let value = |name: &str| {
        let mut variables = environment.split('\0').filter_map(|it| it.split_once('='));
        variables
            .find(|(key, _)| *key == name)
            .map(|(_, value)| value.to_owned())
    };
    Some(TaskProcess {
        job: value("NOMAD_JOB_NAME")?,
        task: value("NOMAD_TASK_NAME")?,
        alloc_id: value("NOMAD_ALLOC_ID")?,
        pid,
    })
}

/// Returns the supervisors of tasks.
pub fn supervisors(all: &[Found]) -> Vec<&Found> {
    let is_one = |found: &&Found| found.command.contains(" task-supervisor ");
    all.iter().filter(is_one).collect()
}

/// Returns the shims of containers.
pub fn shims(all: &[Found]) -> Vec<&Found> {
    let is_one = |found: &&Found| {
        let program = found.command.split(' ').next().unwrap_or_default();
        program.ends_with("containerd-shim-runc-v2")
    };
    all.iter().filter(is_one).collect()
}

/// Returns the engine's containerd.
pub fn containerd(all: &[Found]) -> Option<&Found> {
    let is_one = |found: &&Found| found.command.starts_with("containerd --config ");
    all.iter().find(is_one)
}

/// Kills a process with SIGKILL. An error means that it has ended.
pub fn kill_now(pid: i32) {
    let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
}
