//! Usage of tasks by their processes: for nodes whose control groups do not count it.
//!
//! Memory that processes share counts for each of them, and the cpu time of a process counts for its task once
//! it is reaped by another process of the task.

use std::collections::HashMap;
use std::time::Duration;

use procfs::process::{Process, all_processes};

use crate::process_id::marker_of;
use crate::usage::Usage;

/// One process, as read.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Reading {
    parent: i32,
    /// The task in its environment.
    task: Option<String>,
    /// In clock ticks, its reaped children included.
    user: u64,
    system: u64,
    /// In bytes.
    resident: u64,
}

/// Returns what each task uses, by the text of its id. Blocks: it reads files of every process.
pub(crate) fn read() -> HashMap<String, Usage> {
    let ticks = procfs::ticks_per_second();
    let page = procfs::page_size();
    let readings = all_processes().into_iter().flatten().filter_map(|process| {
        let process: Process = process.ok()?;
        let stat = process.stat().ok()?;
        let reaped = |ticks: i64| u64::try_from(ticks).unwrap_or(0);
        let reading = Reading {
            parent: stat.ppid,
            task: marker_of(stat.pid),
            user: stat.utime.saturating_add(reaped(stat.cutime)),
            system: stat.stime.saturating_add(reaped(stat.cstime)),
            resident: stat.rss.saturating_mul(page),
        };
        Some((stat.pid, reading))
    });
    sum(&readings.collect(), ticks)
}

/// Sums up the processes of each task: those with its mark, and their descendants without one.
fn sum(readings: &HashMap<i32, Reading>, ticks_per_second: u64) -> HashMap<String, Usage> {
    let time = |ticks: u64| {
        let ms = ticks.saturating_mul(1000) / ticks_per_second.max(1);
        Duration::from_millis(ms)
    };
    let mut tasks: HashMap<String, Usage> = HashMap::new();
    for (pid, reading) in readings {
        let Some(task) = task_of(readings, *pid) else {
            continue;
        };
        let usage = tasks.entry(task.to_owned()).or_default();
        usage.cpu_user += time(reading.user);
        usage.cpu_system += time(reading.system);
        let memory = usage.memory.unwrap_or(0).saturating_add(reading.resident);
        (usage.memory, usage.anonymous) = (Some(memory), Some(memory));
    }
    tasks
}

fn task_of(readings: &HashMap<i32, Reading>, pid: i32) -> Option<&str> {
    let mut pid = pid;
    // A reading is no snapshot: reused pids might make a circle.
    for _ in 0..readings.len() {
        let reading = readings.get(&pid)?;
        if let Some(task) = &reading.task {
            return Some(task);
        }
        pid = reading.parent;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_count_for_the_task_of_their_nearest_marked_ancestor() {
        let reading = |parent, task: Option<&str>, user, resident| Reading {
            parent,
            task: task.map(str::to_owned),
            user,
            system: 1,
            resident,
        };
        let readings = HashMap::from([
            (1, reading(0, None, 100, 1)),
            (10, reading(1, Some("a"), 50, 1000)),
            // Cleared its environment.
            (11, reading(10, None, 100, 500)),
            (12, reading(11, Some("b"), 7, 30)),
            // A circle, as of reused pids.
            (20, reading(21, None, 1, 1)),
            (21, reading(20, None, 1, 1)),
        ]);
        let tasks = sum(&readings, 100);
        assert_eq!(tasks.len(), 2, "{tasks:?}");
        assert_eq!(tasks["a"].cpu_user, Duration::from_millis(1500));
        assert_eq!(tasks["a"].cpu_system, Duration::from_millis(20));
        assert_eq!(tasks["a"].memory, Some(1500));
        assert_eq!(tasks["b"].memory, Some(30));
    }
}
