//! CPU affinity: keeps a task on its dedicated cores where there is no `cpuset` controller.

use std::io;

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;

/// Restores the calling thread's own affinity when dropped. Processes spawned meanwhile keep the
/// task's.
pub(crate) struct AffinityGuard {
    own: CpuSet,
}

/// Moves the calling thread to `cores` until the returned guard is dropped.
pub(crate) fn enter(cores: &[u16]) -> io::Result<AffinityGuard> {
    let this = Pid::from_raw(0);
    let own = sched_getaffinity(this)?;
    let mut set = CpuSet::new();
    for id in cores {
        set.set(usize::from(*id))?;
    }
    sched_setaffinity(this, &set)?;
    Ok(AffinityGuard { own })
}

impl Drop for AffinityGuard {
    fn drop(&mut self) {
        // On failure the thread stays on the task's cores, where it works as well.
        let _ = sched_setaffinity(Pid::from_raw(0), &self.own);
    }
}
