//! Resources that a task uses.

use std::fs;
use std::path::Path;
use std::time::Duration;

/// Resources of one start of a task, its children included. `None`: unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    pub cpu_user: Duration,
    pub cpu_system: Duration,
    /// Time that the task was held back by its limit.
    pub cpu_throttled: Duration,
    pub cpu_throttled_periods: u64,
    /// In bytes, as all memory here.
    pub memory: Option<u64>,
    /// The highest `memory` so far.
    pub memory_max: Option<u64>,
    pub anonymous: Option<u64>,
    pub file: Option<u64>,
    pub swap: Option<u64>,
}

/// Reads the usage of a control group; `None`: it does not exist, or has no accounting of cpu.
///
/// Source: the kernel's documentation of cgroup version 2.
pub(crate) fn of_cgroup(directory: &Path) -> Option<Usage> {
    let read = |file: &str| fs::read_to_string(directory.join(file)).unwrap_or_default();
    let cpu = read("cpu.stat");
    let micros = |name: &str| field(&cpu, name).map(Duration::from_micros);
    let memory = read("memory.stat");
    let number = |file: &str| read(file).trim().parse().ok();
    Some(Usage {
        cpu_user: micros("user_usec")?,
        cpu_system: micros("system_usec")?,
        cpu_throttled: micros("throttled_usec").unwrap_or_default(),
        cpu_throttled_periods: field(&cpu, "nr_throttled").unwrap_or(0),
        memory: number("memory.current"),
        memory_max: number("memory.peak"),
        anonymous: field(&memory, "anon"),
        file: field(&memory, "file"),
        swap: number("memory.swap.current"),
    })
}

fn field(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| {
        let value = line.strip_prefix(name)?.strip_prefix(' ')?;
        value.trim().parse().ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_of_a_group_are_read() {
        let group = tempfile::tempdir().unwrap();
        assert_eq!(of_cgroup(group.path()), None);
        let write = |name: &str, text: &str| fs::write(group.path().join(name), text).unwrap();
        write("cpu.stat", "usage_usec 5\nuser_usec 3\nsystem_usec 2\n");
        let least = of_cgroup(group.path()).unwrap();
        assert_eq!(least.cpu_user, Duration::from_micros(3));
        assert_eq!((least.memory, least.cpu_throttled_periods), (None, 0));
        write(
            "cpu.stat",
            "user_usec 3\nsystem_usec 2\nnr_periods 9\nnr_throttled 4\nthrottled_usec 7\n",
        );
        write("memory.current", "4096\n");
        write("memory.peak", "8192\n");
        write("memory.stat", "anon 1024\nanon_thp 5\nfile 2048\n");
        write("memory.swap.current", "0\n");
        let expected = Usage {
            cpu_user: Duration::from_micros(3),
            cpu_system: Duration::from_micros(2),
            cpu_throttled: Duration::from_micros(7),
            cpu_throttled_periods: 4,
            memory: Some(4096),
            memory_max: Some(8192),
            anonymous: Some(1024),
            file: Some(2048),
            swap: Some(0),
        };
        assert_eq!(of_cgroup(group.path()), Some(expected));
    }
}
