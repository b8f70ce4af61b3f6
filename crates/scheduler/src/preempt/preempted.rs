//! The victims of a plan so far.

use std::sync::Arc;

use model::{AllocId, JobKey};
use rustc_hash::{FxHashMap, FxHashSet};
use state::AllocView;

/// The plan's victims, with their number by group.
#[derive(Clone, Debug, Default)]
pub(crate) struct Preempted {
    ids: FxHashSet<AllocId>,
    by_group: FxHashMap<(JobKey, Arc<str>), u32>,
}

impl Preempted {
    pub(crate) fn add(&mut self, view: &AllocView) {
        if self.ids.insert(view.alloc.id) {
            *self.by_group.entry(group(view)).or_insert(0) += 1;
        }
    }

    pub(crate) fn contains(&self, id: AllocId) -> bool {
        self.ids.contains(&id)
    }

    pub(crate) fn ids(&self) -> impl Iterator<Item = AllocId> {
        self.ids.iter().copied()
    }

    /// Returns the number of victims in the allocation's group.
    pub(crate) fn of_group(&self, view: &AllocView) -> u32 {
        if self.by_group.is_empty() {
            return 0;
        }
        self.by_group.get(&group(view)).copied().unwrap_or(0)
    }
}

fn group(view: &AllocView) -> (JobKey, Arc<str>) {
    (view.alloc.job_key(), Arc::clone(&view.alloc.task_group))
}
