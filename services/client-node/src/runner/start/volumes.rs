//! Whether a task gets the volumes that its job promises it.
//!
//! Those of the node's configuration were looked at when the agent started; a registered one is
//! looked at here, because users name directories that the servers cannot see.
//!
//! Source: Nomad's public behaviour: a volume that is not there, or a driver that cannot mount one,
//! is an error when the task starts.

use std::collections::BTreeMap;
use std::path::Path;

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

/// Looks whether every volume of the group is there, before a task starts.
///
/// # Errors
/// What is missing, and what to do about it.
pub(super) fn check_directories(
    group: &TaskGroup,
    alloc: &Allocation,
    node: &NodeFacts,
    registered: &BTreeMap<String, String>,
) -> Result<(), String> {
    for (name, request) in &group.volumes {
        let source = request.source_for(alloc.name_index);
        let Some(volume) = node.volume(&source) else {
            return Err(format!(
                "volume {name:?}: this node has no host volume {source:?}: register one with \
                 'kafila volume register', or add it to host_volumes in the node's configuration"
            ));
        };
        let path = &volume.path;
        let is_registered = registered.get(&*source) == Some(path);
        if is_registered && !Path::new(path).is_dir() {
            return Err(format!(
                "volume {name:?}: {path} is not a directory of this node: make it, or delete \
                 volume {source:?} and register it where it is"
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use model::job::{VolumeRequest, VolumeType};
    use test_kit::builders;

    use super::*;

    #[test]
    fn a_registered_volume_is_a_directory_that_is_there() {
        let mut job = builders::service("web", 1);
        let request = VolumeRequest {
            volume_type: VolumeType::Host,
            source: "disk".into(),
            read_only: false,
            sticky: false,
            per_alloc: false,
            access_mode: None,
            attachment_mode: None,
        };
        let group = &mut job.task_groups[0];
        group.volumes.insert("data".into(), request);
        let alloc = builders::allocation(1, &job, builders::node(1).id);
        let group = &job.task_groups[0];
        let check = |paths: &BTreeMap<String, String>| {
            let facts = NodeFacts::default().with_volumes(paths);
            check_directories(group, &alloc, &facts, paths)
        };
        let directory = tempfile::tempdir().unwrap();
        let path = |path: &Path| {
            let path = path.to_str().unwrap().to_owned();
            BTreeMap::from([("disk".to_owned(), path)])
        };
        assert_eq!(check(&path(directory.path())), Ok(()));
        let told = check(&path(&directory.path().join("no"))).unwrap_err();
        assert!(told.contains("is not a directory of this node"), "{told}");
        let told = check(&BTreeMap::new()).unwrap_err();
        assert!(
            told.contains("this node has no host volume \"disk\""),
            "{told}"
        );
    }
}
