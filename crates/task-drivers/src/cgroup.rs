//! A control group per task, where the kernel's version 2 is there and may be written.
//!
//! It makes killing certain, even of processes that left their group and session, and bounds
//! memory and cpu where the operator has these controllers in version 2. Without it everything
//! still works, by process group and by sweeping what was left behind.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use model::MemoryMax;
use serde::{Deserialize, Serialize};

use crate::allowance::{self, Allowance};

/// The node's slice, below the root of the hierarchy.
pub(crate) const DEFAULT_PARENT: &str = "kafila.slice";
/// Where supervisors live, away from the agent: stopping the agent's own group spares them.
const SUPERVISORS: &str = "supervisors.scope";
/// Where tasks are that share cpu: one group of all of them, so that they leave a core at once.
const SHARED: &str = "shared.slice";
/// The controllers that limits need.
const CONTROLLERS: [&str; 3] = ["+memory", "+cpu", "+cpuset"];

/// What a task may use, as the kernel wants it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Limits {
    /// 0: no limit.
    pub(crate) memory_max_bytes: u64,
    /// What is not taken away while others have more than theirs.
    pub(crate) memory_low_bytes: u64,
    /// 1 to 10,000.
    pub(crate) cpu_weight: u64,
    /// The only cores that it runs on; empty: any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) cores: Vec<u16>,
}

impl Limits {
    pub(crate) fn new(allowance: &Allowance) -> Self {
        const MIB: u64 = 1024 * 1024;
        let memory = u64::from(allowance.memory_mib) * MIB;
        let memory_max_bytes = match allowance.memory_max {
            MemoryMax::AsAsked => memory,
            MemoryMax::Mib(mib) => memory.max(u64::from(mib) * MIB),
            MemoryMax::Unlimited => 0,
        };
        // A share of 1,024 per core, as in cgroup version 1, is what a job's MHz have always been;
        // the formula is the kernel documentation's.
        let shares = allowance.cpu_mhz.clamp(2, 262_144);
        Self {
            memory_max_bytes,
            memory_low_bytes: if memory_max_bytes == memory {
                0
            } else {
                memory
            },
            cpu_weight: 1 + (shares - 2) * 9_999 / 262_142,
            cores: allowance.cores.clone(),
        }
    }
}

/// Finds the hierarchy of version 2 and makes the node's slice in it; `None` when there is none,
/// or it may not be written.
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
    // Without it tasks that share have a place of their own each, and run on all cores.
    let _ = fs::create_dir_all(&shared);
    for directory in [&root, &slice, &shared] {
        for controller in CONTROLLERS {
            // Not there in version 2, or not for us to hand out: then there are no such limits.
            let _ = fs::write(directory.join("cgroup.subtree_control"), controller);
        }
    }
    // Killing by group is why tasks get one: an older kernel's groups are of no use.
    slice
        .join(SUPERVISORS)
        .join("cgroup.kill")
        .exists()
        .then_some(slice)
}

/// Tells whether the groups of tasks below `slice` can limit memory.
pub(crate) fn limits_memory(slice: &Path) -> bool {
    let handed_out = fs::read_to_string(slice.join("cgroup.subtree_control"));
    let handed_out = handed_out.unwrap_or_default();
    handed_out.split_whitespace().any(|name| name == "memory")
}

/// Moves the calling process, a supervisor, to its place.
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
    /// Opens the group in `slice`; `None`: it cannot be kept on cores, so there is no use for it.
    pub(crate) fn open(slice: &Path) -> Option<Self> {
        let group = Self {
            slice: slice.to_owned(),
        };
        group.file().exists().then_some(group)
    }

    fn file(&self) -> PathBuf {
        self.slice.join(SHARED).join("cpuset.cpus")
    }

    /// Returns all cores that the node's tasks may run on.
    pub(crate) fn cores(&self) -> io::Result<Vec<u16>> {
        let text = fs::read_to_string(self.slice.join("cpuset.cpus.effective"))?;
        let no_list = || io::Error::new(io::ErrorKind::InvalidData, format!("{text:?} is no list"));
        allowance::parse_list(&text).ok_or_else(no_list)
    }

    /// Keeps all that is in the group on `cores`.
    pub(crate) fn confine(&self, cores: &[u16]) -> io::Result<()> {
        fs::write(self.file(), allowance::list(cores))
    }

    /// Returns the name in the slice of a task's group inside this one.
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

    /// Opens the group of a task that has one by itself or among those that share.
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

    /// Sets what can be set: the files are there only when the controller is.
    fn limit(&self, limits: &Limits) {
        let set = |file: &str, value: u64| {
            let path = self.directory.join(file);
            if value > 0 && path.exists() {
                let _ = fs::write(path, value.to_string());
            }
        };
        set("memory.max", limits.memory_max_bytes);
        set("memory.low", limits.memory_low_bytes);
        // A task dies as one when it dies of hunger.
        set("memory.oom.group", 1);
        set("cpu.weight", limits.cpu_weight);
    }

    /// Keeps what is in the group on `cores`; tells whether it does, which takes the controller.
    pub(crate) fn confine(&self, cores: &[u16]) -> bool {
        let path = self.directory.join("cpuset.cpus");
        path.exists() && fs::write(path, allowance::list(cores)).is_ok()
    }

    /// Moves the calling process in; what it spawns then is in it from its first instruction.
    pub(crate) fn enter(&self) -> io::Result<()> {
        join(&self.directory)
    }

    pub(crate) fn exists(&self) -> bool {
        self.directory.exists()
    }

    /// Kills everything in it. What forks meanwhile is killed too.
    pub(crate) fn kill(&self) -> io::Result<()> {
        fs::write(self.directory.join("cgroup.kill"), "1")
    }

    /// Tells whether a process is in it; a group that does not exist has none.
    pub(crate) fn is_populated(&self) -> bool {
        fs::read_to_string(self.directory.join("cgroup.events"))
            .is_ok_and(|text| text.lines().any(|line| line == "populated 1"))
    }

    /// Tells whether the kernel killed something in it for want of memory.
    pub(crate) fn was_out_of_memory(&self) -> bool {
        let events = fs::read_to_string(self.directory.join("memory.events")).unwrap_or_default();
        events
            .lines()
            .filter_map(|line| line.strip_prefix("oom_kill "))
            .any(|count| count.trim() != "0")
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
        let plain = Allowance {
            cpu_mhz: 1024,
            memory_mib: 300,
            ..Allowance::default()
        };
        let limits = Limits::new(&plain);
        assert_eq!(limits.memory_max_bytes, 300 << 20);
        assert_eq!(limits.memory_low_bytes, 0);
        assert_eq!(limits.cpu_weight, 39);
        for (memory_max, max) in [
            (MemoryMax::Mib(500), 500 << 20),
            // No limit, and still some of it is the task's.
            (MemoryMax::Unlimited, 0),
        ] {
            let more = Allowance {
                memory_max,
                ..plain.clone()
            };
            assert_eq!(Limits::new(&more).memory_max_bytes, max);
            assert_eq!(Limits::new(&more).memory_low_bytes, 300 << 20);
        }
    }

    #[test]
    fn a_tasks_group_is_found_where_it_is() {
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
    fn only_controllers_that_are_there_are_set() {
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
        assert!(group.was_out_of_memory());
        assert!(!group.is_populated());
    }
}
