//! Resource use of tasks, as their drivers know it.

use std::time::Duration;

use model::AllocId;
use task_drivers::Usage;
use tokio_util::sync::CancellationToken;

use super::source::Source;
use crate::context::Drivers;

/// Time between two readings by drivers that ask another program, as Prometheus' usual interval is 15 s.
const READ_EVERY: Duration = Duration::from_secs(10);

/// A task with records of its driver, and what it uses.
#[derive(Clone, Debug)]
pub(super) struct TaskInUse {
    pub(super) alloc_id: AllocId,
    pub(super) namespace: String,
    pub(super) job_id: String,
    pub(super) task_group: String,
    pub(super) task: String,
    /// As in `memory` of its job.
    pub(super) memory_mib: u64,
    pub(super) usage: Usage,
}

/// Lets drivers read what their tasks use, until `ended`.
pub async fn read_usage(drivers: &Drivers, ended: CancellationToken) {
    loop {
        for driver in drivers.values() {
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
pub(super) fn tasks_in_use(drivers: &Drivers, source: &dyn Source) -> Vec<TaskInUse> {
    let mut tasks = Vec::new();
    for driver in drivers.values() {
        for id in driver.leftovers() {
            let Some(assignment) = source.live(id.alloc_id) else {
                continue;
            };
            // Files are read while the source is not locked.
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
