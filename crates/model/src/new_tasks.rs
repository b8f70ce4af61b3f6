//! Destructive and in-place updates: the changes of a job that need new tasks.
//!
//! The scheduler and the annotations of a dry run share this rule.
//!
//! Source: Nomad's public behaviour, and the lifecycle hook besides, which it updates in place
//! although the tasks then run in another order than the job says.

use std::collections::BTreeMap;

use crate::consul::Consul;
use crate::job::{Job, Task, TaskGroup};

/// Tells whether `group` differs between `old` and `new` in a way that needs new tasks.
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

/// Tells whether two versions of a group differ in the environment of all its tasks.
pub fn changes_surroundings(old: &TaskGroup, new: &TaskGroup) -> bool {
    old.ephemeral_disk != new.ephemeral_disk
        || old.networks != new.networks
        || old.volumes != new.volumes
        || Consul::moves(old.consul.as_ref(), new.consul.as_ref())
}

/// Tells whether two versions of a task, each with its job and group, differ in a way that needs a new
/// task.
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
        || old.templates != new.templates
        || old.artifacts != new.artifacts
        || old.identities != new.identities
        || old.vault != new.vault
        || Consul::moves(old.consul.as_ref(), new.consul.as_ref())
        || old.csi_plugin != new.csi_plugin
}

/// Returns the task's effective meta: its own wins over its group's, that over the job's.
fn meta<'a>((job, group, task): (&'a Job, &'a TaskGroup, &'a Task)) -> BTreeMap<&'a str, &'a str> {
    let layers = [&job.meta, &group.meta, &task.meta];
    let words = layers.into_iter().flatten();
    words
        .map(|(key, value)| (key.as_str(), value.as_str()))
        .collect()
}
