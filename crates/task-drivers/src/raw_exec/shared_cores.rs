//! Keeps the group of all tasks that share cpu off the cores that tasks have for themselves.

use std::path::Path;
use std::sync::{Mutex, PoisonError};

use tracing::warn;

use crate::cgroup::SharedCgroup;
use crate::driver::TaskId;
use crate::sharing::Sharing;

/// The group, and who has cores for himself.
#[derive(Debug)]
pub(super) struct SharedCores {
    group: SharedCgroup,
    /// Held while the group is written to, so that the last change is the last that is written.
    sharing: Mutex<Sharing>,
}

impl SharedCores {
    /// Takes up what an earlier run of the agent left: `taken` are the tasks that it started, with
    /// the cores that they have for themselves. `None`: the kernel keeps nobody on cores here.
    pub(super) fn new(
        slice: &Path,
        taken: impl Iterator<Item = (TaskId, Vec<u16>)>,
    ) -> Option<Self> {
        let group = SharedCgroup::open(slice)?;
        let mut sharing = Sharing::default();
        for (id, cores) in taken {
            sharing.take(&id, &cores);
        }
        confine(&group, &sharing);
        Some(Self {
            group,
            sharing: Mutex::new(sharing),
        })
    }

    /// Clears a task's own cores, before it starts.
    pub(super) fn take(&self, id: &TaskId, cores: &[u16]) {
        self.change(|sharing| sharing.take(id, cores));
    }

    /// Lets others onto the cores of a task that is gone.
    pub(super) fn give_back(&self, id: &TaskId) {
        self.change(|sharing| sharing.give_back(id));
    }

    fn change(&self, change: impl FnOnce(&mut Sharing) -> bool) {
        let mut sharing = self.sharing.lock().unwrap_or_else(PoisonError::into_inner);
        if change(&mut sharing) {
            confine(&self.group, &sharing);
        }
    }
}

/// What cannot be written now is with the next change: the tasks run, on more or fewer cores.
fn confine(group: &SharedCgroup, sharing: &Sharing) {
    let written = group
        .cores()
        .and_then(|all| group.confine(&sharing.left(&all)));
    if let Err(error) = written {
        warn!(%error, "cannot keep tasks that share cpu off the cores of others");
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
    fn the_group_is_where_nobody_else_is_after_every_change() {
        let slice = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| fs::write(slice.path().join(name), text).unwrap();
        assert!(SharedCores::new(slice.path(), [].into_iter()).is_none());
        fs::create_dir(slice.path().join("shared.slice")).unwrap();
        assert!(SharedCores::new(slice.path(), [].into_iter()).is_none());
        write("cpuset.cpus.effective", "0-3,8\n");
        write("shared.slice/cpuset.cpus", "");
        let group = || fs::read_to_string(slice.path().join("shared.slice/cpuset.cpus")).unwrap();
        // One that an earlier run of the agent had started.
        let cores = SharedCores::new(slice.path(), [(id(1), vec![0])].into_iter()).unwrap();
        assert_eq!(group(), "1-3,8");
        cores.take(&id(2), &[1, 2]);
        assert_eq!(group(), "3,8");
        cores.give_back(&id(1));
        assert_eq!(group(), "0,3,8");
        // Somebody gave the node other cores meanwhile.
        write("cpuset.cpus.effective", "1-4");
        cores.take(&id(3), &[4]);
        assert_eq!(group(), "3");
        cores.give_back(&id(2));
        cores.give_back(&id(3));
        assert_eq!(group(), "1-4");
    }
}
