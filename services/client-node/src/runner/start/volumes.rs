//! Whether a task gets the volumes that its job promises it.
//!
//! Source: Nomad's public behaviour: a volume that is not there, or a driver that cannot mount one,
//! is an error when the task starts.

use model::{Allocation, Task, TaskGroup};
use task_drivers::{Driver, NodeFacts};

/// # Errors
/// What the task cannot be given, and what to do about it.
pub(super) fn check(
    group: &TaskGroup,
    task: &Task,
    alloc: &Allocation,
    driver: &dyn Driver,
    node: &NodeFacts,
) -> Result<(), String> {
    for mount in &task.volume_mounts {
        let name = &mount.volume;
        let request = group.volumes.get(name);
        let request = request.ok_or_else(|| format!("the group has no volume {name:?}"))?;
        let source = request.source_for(alloc.name_index);
        if node.volume(&source).is_none() {
            return Err(format!(
                "volume {name:?}: this node has no host volume {source:?}: add it to host_volumes \
                 in the node's configuration"
            ));
        }
        if !driver.can_mount() {
            return Err(format!(
                "volume {name:?}: task driver {:?} does not support host volumes: remove the \
                 volume_mount, the task finds the directory in KAFILA_VOLUME_<name>",
                driver.name()
            ));
        }
    }
    Ok(())
}
