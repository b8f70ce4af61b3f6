//! Whether what runs may take over a changed job as it runs, or its tasks have to be started anew.
//!
//! The scheduler decides by it, and a dry run says it of each task.
//!
//! Source: Nomad's public behaviour, and the lifecycle hook besides, which it updates in place
//! although the tasks then run in another order than the job says.

use std::collections::BTreeMap;

use crate::job::{Job, Task, TaskGroup};

/// Tells whether `group` of `new` differs from the same group of `old` in what tasks are started
/// with.
pub fn needs_new_tasks(old: &Job, new: &Job, group: &TaskGroup) -> bool {
    let Some(old_group) = old.task_group(&group.name) else {
        return true;
    };
    if old_group.tasks.len() != group.tasks.len() || changes_surroundings(old_group, group) {
        return true;
    }
    let mut tasks = group.tasks.iter();
    tasks.any(|task| match old_group.task(&task.name) {
        None => true,
        Some(old_task) => restarts_task((old, old_group, old_task), (new, group, task)),
    })
}

/// Tells whether two versions of a group differ in what all its tasks are started in.
pub fn changes_surroundings(old: &TaskGroup, new: &TaskGroup) -> bool {
    old.ephemeral_disk != new.ephemeral_disk
        || old.networks != new.networks
        || old.volumes != new.volumes
}

/// Tells whether two versions of a task, each with its job and group, differ in what it is started
/// with.
pub fn restarts_task(old: (&Job, &TaskGroup, &Task), new: (&Job, &TaskGroup, &Task)) -> bool {
    task_differs(old.2, new.2) || meta(old) != meta(new)
}

fn task_differs(old: &Task, new: &Task) -> bool {
    old.driver != new.driver
        || old.user != new.user
        || old.config != new.config
        || old.env != new.env
        || old.resources != new.resources
        || old.lifecycle != new.lifecycle
        || old.logs.disabled != new.logs.disabled
        || old.volume_mounts != new.volume_mounts
}

/// Returns the meta that the task sees: its own words win over its group's, those over the job's.
fn meta<'a>((job, group, task): (&'a Job, &'a TaskGroup, &'a Task)) -> BTreeMap<&'a str, &'a str> {
    let layers = [&job.meta, &group.meta, &task.meta];
    let words = layers.into_iter().flatten();
    words
        .map(|(key, value)| (key.as_str(), value.as_str()))
        .collect()
}
