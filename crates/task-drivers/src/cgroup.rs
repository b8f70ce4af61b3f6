//! Control groups of tasks, where cgroup version 2 exists and is writable.
//!
//! A group makes killing reliable, even for processes that left their process group and session, and
//! limits memory and cpu where the controllers exist. Without groups, tasks are killed by process
//! group and by a sweep for marked processes.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use model::MemoryMax;
use serde::{Deserialize, Serialize};

use crate::core_list;
use crate::resource_limits::ResourceLimits;
use crate::usage::{self, Usage};

/// The node's slice, below the root of the hierarchy.
pub(crate) const DEFAULT_PARENT: &str = "kafila.slice";
/// The group of all supervisors, apart from the agent's: stopping the agent's group spares them.
const SUPERVISORS: &str = "supervisors.scope";
/// The parent group of tasks that share cpu, so that one write moves all of them off a core.
const SHARED: &str = "shared.slice";
/// The controllers that limits need.
const CONTROLLERS: [&str; 3] = ["+memory", "+cpu", "+cpuset"];

/// A task's limits in the kernel's units.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Limits {
    /// 0: no limit.
    pub(crate) memory_max_bytes: u64,
    /// Memory that is not reclaimed while other groups exceed theirs.
    pub(crate) memory_low_bytes: u64,
    /// 1 to 10,000.
    pub(crate) cpu_weight: u64,
    /// Dedicated cores; empty: the shared ones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) cores: Vec<u16>,
}

impl Limits {
    pub(crate) fn new(resources: &ResourceLimits) -> Self {
        const MIB: u64 = 1024 * 1024;
        let memory = u64::from(resources.memory_mib) * MIB;
        let memory_max_bytes = match resources.memory_max {
            MemoryMax::AsAsked => memory,
            MemoryMax::Mib(mib) => memory.max(u64::from(mib) * MIB),
            MemoryMax::Unlimited => 0,
        };
        // A job's MHz count as cpu shares of cgroup version 1, 1,024 per core. The conversion is
        // the kernel documentation's.
        let shares = resources.cpu_mhz.clamp(2, 262_144);
        Self {
            memory_max_bytes,
            memory_low_bytes: if memory_max_bytes == memory {
                0
            } else {
                memory
            },
            cpu_weight: 1 + (shares - 2) * 9_999 / 262_142,
            cores: resources.cores.clone(),
        }
    }
}

/// Finds the hierarchy of version 2 and creates the node's slice in it. `None`: it does not exist or
/// is not writable.
pub(crate) fn prepare(parent: &str) -> Option<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mounts").ok()?;
    let root = mounts.lines().find_map(|line| {
        let mut words = line.split(' ');
        let (target, kind) = (words.nth(1)?, words.next()?);
        (kind == "cgroup2").then(|| PathBuf::from(target))
    })?;
    let slice = root.join(parent);
    fs::create_dir_all(slice.join(SUPERVISORS)).ok()?;
    let shared = slice.join(SHARED);
    // Without it tasks that share cpu get a group each, and run on all cores.
    let _ = fs::create_dir_all(&shared);
    for directory in [&root, &slice, &shared] {
        for controller in CONTROLLERS {
            // A controller that is missing or not delegated sets no limits.
            let _ = fs::write(directory.join("cgroup.subtree_control"), controller);
        }
    }
    // Groups are used for killing; an older kernel's cannot do it.
    slice
        .join(SUPERVISORS)
        .join("cgroup.kill")
        .exists()
        .then_some(slice)
}

/// Returns whether the groups of tasks below `slice` can limit memory.
pub(crate) fn limits_memory(slice: &Path) -> bool {
    !missing_controllers(slice).contains(&"memory")
}

/// Returns the controllers that the groups of tasks below `slice` lack for limits of cpu and memory.
pub(crate) fn missing_controllers(slice: &Path) -> Vec<&'static str> {
    let delegated = fs::read_to_string(slice.join("cgroup.subtree_control"));
    let delegated = delegated.unwrap_or_default();
    let has = |wanted: &str| delegated.split_whitespace().any(|name| name == wanted);
    ["cpu", "memory"]
        .into_iter()
        .filter(|name| !has(name))
        .collect()
}

/// Moves the calling process, a supervisor, into the group of supervisors.
pub(crate) fn enter_supervisors(slice: &Path) -> io::Result<()> {
    join(&slice.join(SUPERVISORS))
}

fn join(directory: &Path) -> io::Result<()> {
    fs::write(
        directory.join("cgroup.procs"),
        std::process::id().to_string(),
    )
}

/// The group of all tasks that share cpu.
#[derive(Clone, Debug)]
pub(crate) struct SharedCgroup {
    slice: PathBuf,
}

impl SharedCgroup {
    /// Opens the group in `slice`; `None`: there is no `cpuset` controller, so it has no use.
    pub(crate) fn open(slice: &Path) -> Option<Self> {
        let group = Self {
            slice: slice.to_owned(),
        };
        group.file().exists().then_some(group)
    }

    fn file(&self) -> PathBuf {
        self.slice.join(SHARED).join("cpuset.cpus")
    }

    /// Returns all cores of the node's slice.
    pub(crate) fn cores(&self) -> io::Result<Vec<u16>> {
        let text = fs::read_to_string(self.slice.join("cpuset.cpus.effective"))?;
        let invalid = || {
            io::Error::new(
                io::ErrorKind::InvalidData,
                format!("{text:?} is not a core list"),
            )
        };
        core_list::parse(&text).ok_or_else(invalid)
    }

    /// Confines every task in the group to `cores`.
    pub(crate) fn confine(&self, cores: &[u16]) -> io::Result<()> {
        fs::write(self.file(), core_list::format(cores))
    }

    /// Returns the name of a task's group inside this one, relative to the slice.
    pub(crate) fn name_of(task: &str) -> String {
        format!("{SHARED}/{task}")
    }
}

/// The group of one task.
#[derive(Clone, Debug)]
pub(crate) struct TaskCgroup {
    directory: PathBuf,
}

impl TaskCgroup {
    /// Opens the group `name` of `slice`, which may not exist.
    pub(crate) fn at(slice: &Path, name: &str) -> Self {
        Self {
            directory: slice.join(format!("{name}.scope")),
        }
    }

    /// Opens the group of a task, inside the shared group or directly in the slice.
    pub(crate) fn find(slice: &Path, task: &str) -> Self {
        let shared = Self::at(slice, &SharedCgroup::name_of(task));
        if shared.exists() {
            shared
        } else {
            Self::at(slice, task)
        }
    }

    pub(crate) fn create(&self, limits: &Limits) -> io::Result<()> {
        match fs::create_dir(&self.directory) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        self.limit(limits);
        Ok(())
    }

    /// Sets the limits whose controller exists.
    fn limit(&self, limits: &Limits) {
        let set = |file: &str, value: u64| {
            let path = self.directory.join(file);
            if value > 0 && path.exists() {
                let _ = fs::write(path, value.to_string());
            }
        };
        set("memory.max", limits.memory_max_bytes);
        set("memory.low", limits.memory_low_bytes);
        // Out of memory, all processes of a task are killed together.
        set("memory.oom.group", 1);
        set("cpu.weight", limits.cpu_weight);
    }

    /// Returns whether the kernel enforces these limits of cpu and memory.
    pub(crate) fn has(&self, limits: &Limits) -> bool {
        let has = |file: &str, value: u64| {
            let held = fs::read_to_string(self.directory.join(file));
            value == 0 || held.is_ok_and(|held| held.trim() == value.to_string())
        };
        has("memory.max", limits.memory_max_bytes) && has("cpu.weight", limits.cpu_weight)
    }

    /// Confines the group to `cores`. Returns whether it is confined, which takes the controller.
    pub(crate) fn confine(&self, cores: &[u16]) -> bool {
        let path = self.directory.join("cpuset.cpus");
        path.exists() && fs::write(path, core_list::format(cores)).is_ok()
    }

    /// Moves the calling process into the group; its children start in it.
    pub(crate) fn enter(&self) -> io::Result<()> {
        join(&self.directory)
    }

    pub(crate) fn exists(&self) -> bool {
        self.directory.exists()
    }

    /// Kills every process in it, new forks included.
    pub(crate) fn kill(&self) -> io::Result<()> {
        fs::write(self.directory.join("cgroup.kill"), "1")
    }

    /// Returns whether a process is in it; a missing group has none.
    pub(crate) fn is_populated(&self) -> bool {
        fs::read_to_string(self.directory.join("cgroup.events"))
            .is_ok_and(|text| text.lines().any(|line| line == "populated 1"))
    }

    /// Returns whether the OOM killer killed a process in it.
    pub(crate) fn was_out_of_memory(&self) -> bool {
        let events = fs::read_to_string(self.directory.join("memory.events")).unwrap_or_default();
        events
            .lines()
            .filter_map(|line| line.strip_prefix("oom_kill "))
            .any(|count| count.trim() != "0")
    }

    /// Returns what its processes use; `None`: it does not exist, or has no accounting of cpu.
    pub(crate) fn usage(&self) -> Option<Usage> {
        usage::of_cgroup(&self.directory)
    }

    pub(crate) fn remove(&self) -> io::Result<()> {
        match fs::remove_dir(&self.directory) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            result => result,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_in_the_kernels_units() {
        let plain = ResourceLimits {
            cpu_mhz: 1024,
            memory_mib: 300,
            ..ResourceLimits::default()
        };
        let limits = Limits::new(&plain);
        assert_eq!(limits.memory_max_bytes, 300 << 20);
        assert_eq!(limits.memory_low_bytes, 0);
        assert_eq!(limits.cpu_weight, 39);
        for (memory_max, max) in [
            (MemoryMax::Mib(500), 500 << 20),
            // No limit, but the reserved memory is protected.
            (MemoryMax::Unlimited, 0),
        ] {
            let more = ResourceLimits {
                memory_max,
                ..plain.clone()
            };
            assert_eq!(Limits::new(&more).memory_max_bytes, max);
            assert_eq!(Limits::new(&more).memory_low_bytes, 300 << 20);
        }
    }

    #[test]
    fn a_tasks_group_is_found_in_either_place() {
        let slice = tempfile::tempdir().unwrap();
        let path = |name: &str| slice.path().join(name);
        let found = || TaskCgroup::find(slice.path(), "a").directory;
        assert_eq!(found(), path("a.scope"));
        fs::create_dir_all(path("shared.slice/a.scope")).unwrap();
        assert_eq!(found(), path("shared.slice/a.scope"));
        assert_eq!(
            TaskCgroup::at(slice.path(), &SharedCgroup::name_of("a")).directory,
            found()
        );
    }

    #[test]
    fn missing_controllers_are_named() {
        let slice = tempfile::tempdir().unwrap();
        assert_eq!(missing_controllers(slice.path()), ["cpu", "memory"]);
        fs::write(slice.path().join("cgroup.subtree_control"), "cpuset cpu\n").unwrap();
        assert_eq!(missing_controllers(slice.path()), ["memory"]);
        assert!(!limits_memory(slice.path()));
    }

    #[test]
    fn only_existing_controllers_are_set() {
        let slice = tempfile::tempdir().unwrap();
        let group = TaskCgroup::at(slice.path(), "a");
        group.create(&Limits::default()).unwrap();
        assert!(!group.confine(&[1]));
        let file = |name: &str| slice.path().join("a.scope").join(name);
        fs::write(file("memory.max"), "max").unwrap();
        fs::write(file("memory.events"), "low 0\noom_kill 2\n").unwrap();
        let limits = Limits {
            memory_max_bytes: 5,
            memory_low_bytes: 4,
            cpu_weight: 3,
            cores: Vec::new(),
        };
        group.create(&limits).unwrap();
        fs::write(file("cpuset.cpus"), "").unwrap();
        assert!(group.confine(&[0, 1, 4]));
        assert_eq!(fs::read_to_string(file("cpuset.cpus")).unwrap(), "0-1,4");
        assert_eq!(fs::read_to_string(file("memory.max")).unwrap(), "5");
        assert!(!file("cpu.weight").exists());
        assert!(!group.has(&limits), "no weight of cpu");
        fs::write(file("cpu.weight"), "3\n").unwrap();
        assert!(group.has(&limits));
        fs::write(file("memory.max"), "max\n").unwrap();
        assert!(!group.has(&limits), "no limit of memory");
        assert!(group.was_out_of_memory());
        assert!(!group.is_populated());
    }
}
