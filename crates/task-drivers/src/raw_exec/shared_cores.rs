//! Cores of the shared control group: all but the dedicated ones, rewritten with every change.

use std::path::Path;
use std::sync::{Mutex, PoisonError};

use tracing::warn;

use crate::cgroup::SharedCgroup;
use crate::dedicated_cores::DedicatedCores;
use crate::driver::TaskId;

/// The shared control group and the dedicated cores.
#[derive(Debug)]
pub(crate) struct SharedCores {
    group: SharedCgroup,
    /// Locked while the group is written, so that the last change is written last.
    dedicated: Mutex<DedicatedCores>,
}

impl SharedCores {
    /// Opens the group in `slice`. `dedicated` are the tasks of an earlier run of the agent with
    /// their dedicated cores. `None`: there is no `cpuset` controller.
    pub(super) fn new(
        slice: &Path,
        dedicated: impl Iterator<Item = (TaskId, Vec<u16>)>,
    ) -> Option<Self> {
        let group = SharedCgroup::open(slice)?;
        let mut by_task = DedicatedCores::default();
        for (id, cores) in dedicated {
            by_task.add(&id, &cores);
        }
        confine(&group, &by_task);
        Some(Self {
            group,
            dedicated: Mutex::new(by_task),
        })
    }

    /// Dedicates cores to a task, before it starts.
    pub(crate) fn dedicate(&self, id: &TaskId, cores: &[u16]) {
        self.change(|dedicated| dedicated.add(id, cores));
    }

    /// Returns the cores of a task that is gone to the shared group.
    pub(super) fn release(&self, id: &TaskId) {
        self.change(|dedicated| dedicated.remove(id));
    }

    fn change(&self, change: impl FnOnce(&mut DedicatedCores) -> bool) {
        let mut dedicated = self
            .dedicated
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if change(&mut dedicated) {
            confine(&self.group, &dedicated);
        }
    }
}

/// A failed write is retried with the next change. Until then the tasks run on other cores than
/// they should.
fn confine(group: &SharedCgroup, dedicated: &DedicatedCores) {
    let written = group
        .cores()
        .and_then(|all| group.confine(&dedicated.shared(&all)));
    if let Err(error) = written {
        warn!(%error, "cannot keep tasks that share cpu off dedicated cores");
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use model::AllocId;

    use super::*;

    fn id(number: u128) -> TaskId {
        TaskId {
            alloc_id: AllocId::from_random(number),
            task: "web".into(),
            attempt: 1,
        }
    }

    #[test]
    fn the_group_has_the_cores_that_are_not_dedicated_after_every_change() {
        let slice = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| fs::write(slice.path().join(name), text).unwrap();
        assert!(SharedCores::new(slice.path(), [].into_iter()).is_none());
        fs::create_dir(slice.path().join("shared.slice")).unwrap();
        assert!(SharedCores::new(slice.path(), [].into_iter()).is_none());
        write("cpuset.cpus.effective", "0-3,8\n");
        write("shared.slice/cpuset.cpus", "");
        let group = || fs::read_to_string(slice.path().join("shared.slice/cpuset.cpus")).unwrap();
        // Task 1 was started by an earlier run of the agent.
        let cores = SharedCores::new(slice.path(), [(id(1), vec![0])].into_iter()).unwrap();
        assert_eq!(group(), "1-3,8");
        cores.dedicate(&id(2), &[1, 2]);
        assert_eq!(group(), "3,8");
        cores.release(&id(1));
        assert_eq!(group(), "0,3,8");
        // The node got other cores meanwhile.
        write("cpuset.cpus.effective", "1-4");
        cores.dedicate(&id(3), &[4]);
        assert_eq!(group(), "3");
        cores.release(&id(2));
        cores.release(&id(3));
        assert_eq!(group(), "1-4");
    }
}
