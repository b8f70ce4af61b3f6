//! Numbers about the allocations on the node, for its metrics.

use std::time::Duration;

use model::{AllocId, ComparableResources};
use task_drivers::Usage;
use tokio_util::sync::CancellationToken;

use super::agent::Agent;

/// Time between two readings by drivers that ask another program, as Prometheus' usual interval is 15 s.
const READ_EVERY: Duration = Duration::from_secs(10);

/// Allocations and what they reserve.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Reserved {
    /// Allocations without a running task, kept for their files.
    pub(crate) ended: i64,
    /// The sum over all others.
    pub(crate) allocated: ComparableResources,
}

/// A task with records of its driver, and what it uses.
#[derive(Clone, Debug)]
pub(crate) struct TaskInUse {
    pub(crate) alloc_id: AllocId,
    pub(crate) namespace: String,
    pub(crate) job_id: String,
    pub(crate) task_group: String,
    pub(crate) task: String,
    /// As in `memory` of its job.
    pub(crate) memory_mib: u64,
    pub(crate) usage: Usage,
}

impl Agent {
    pub(crate) fn reserved(&self) -> Reserved {
        let mut reserved = Reserved::default();
        for entry in self.lock().allocs.values() {
            if entry.handle.has_ended() {
                reserved.ended += 1;
            } else {
                let resources = entry.assignment.alloc.resources.total;
                reserved.allocated = reserved.allocated.plus(resources);
            }
        }
        reserved
    }

    /// Lets drivers read what their tasks use, until `ended`.
    pub(crate) async fn read_usage(&self, ended: CancellationToken) {
        loop {
            for driver in self.context.tasks.drivers.values() {
                tokio::select! {
                    () = ended.cancelled() => return,
                    () = driver.read_usage() => {}
                }
            }
            tokio::select! {
                () = ended.cancelled() => return,
                () = tokio::time::sleep(READ_EVERY) => {}
            }
        }
    }

    /// Returns the tasks whose drivers know their use. Blocks: it reads files.
    pub(crate) fn tasks_in_use(&self) -> Vec<TaskInUse> {
        let mut tasks = Vec::new();
        for driver in self.context.tasks.drivers.values() {
            for id in driver.leftovers() {
                let Some((assignment, false)) = self.find(id.alloc_id) else {
                    continue;
                };
                // Files are read without the lock.
                let Some(usage) = driver.usage(&id) else {
                    continue;
                };
                let alloc = &assignment.alloc;
                let group = assignment.job.task_group(&alloc.task_group);
                let task = group.and_then(|group| group.task(&id.task));
                tasks.push(TaskInUse {
                    alloc_id: id.alloc_id,
                    namespace: alloc.namespace.to_string(),
                    job_id: alloc.job_id.to_string(),
                    task_group: alloc.task_group.to_string(),
                    task: id.task,
                    memory_mib: task.map_or(0, |task| task.resources.memory_mib.into()),
                    usage,
                });
            }
        }
        tasks
    }
}
