//! Keeping a task on its cores where no control group does.

use std::io;

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;

/// The calling process's own cores, while it is on a task's; what it spawns meanwhile stays there.
pub(crate) struct OnCores {
    own: CpuSet,
}

/// Moves the calling thread to `cores`, until what is returned is dropped.
pub(crate) fn enter(cores: &[u16]) -> io::Result<OnCores> {
    let this = Pid::from_raw(0);
    let own = sched_getaffinity(this)?;
    let mut set = CpuSet::new();
    for id in cores {
        set.set(usize::from(*id))?;
    }
    sched_setaffinity(this, &set)?;
    Ok(OnCores { own })
}

impl Drop for OnCores {
    fn drop(&mut self) {
        // Where it stays if this fails there is work for it, too.
        let _ = sched_setaffinity(Pid::from_raw(0), &self.own);
    }
}
