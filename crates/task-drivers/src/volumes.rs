//! Volume checks at the start of a task.
//!
//! Volumes of the node's configuration were checked when the agent started. The directories of
//! registered volumes are checked here, because the servers cannot see them.
//!
//! Source: Nomad's public behaviour: a missing volume, or a driver that cannot mount one, fails the
//! start of the task.

use std::collections::BTreeMap;
use std::path::Path;

use crate::driver::{Driver, TaskMount};
use crate::env::NodeFacts;
use model::{Allocation, Task, TaskGroup};

/// Resolves the volume mounts of `task`.
///
/// # Errors
/// The volume that the task cannot get, and how to correct it.
pub fn mounts(
    group: &TaskGroup,
    task: &Task,
    alloc: &Allocation,
    driver: &dyn Driver,
    node: &NodeFacts,
) -> Result<Vec<TaskMount>, String> {
    let mut mounts = Vec::new();
    for mount in &task.volume_mounts {
        let name = &mount.volume;
        let request = group.volumes.get(name);
        let request = request.ok_or_else(|| format!("the group has no volume {name:?}"))?;
        let source = request.source_for(alloc.name_index);
        let found = if request.is_csi() {
            node.mounted(name)
        } else {
            node.volume(&source)
        };
        let Some(volume) = found else {
            return Err(if request.is_csi() {
                format!("volume {name:?}: CSI volume {source:?} is not mounted on this node")
            } else {
                format!(
                    "volume {name:?}: this node has no host volume {source:?}: add it to \
                     host_volumes in the node's configuration"
                )
            });
        };
        if !driver.can_mount() {
            return Err(format!(
                "volume {name:?}: task driver {:?} does not support mounts of volumes: remove the \
                 volume_mount, the task finds the directory in KAFILA_VOLUME_<name>",
                driver.name()
            ));
        }
        mounts.push(TaskMount {
            source: volume.path.clone(),
            destination: mount.destination.clone(),
            read_only: volume.read_only || request.read_only || mount.read_only,
            is_shared: false,
        });
    }
    Ok(mounts)
}

/// Checks that the directory of every volume of the group exists.
///
/// # Errors
/// The missing volume, and how to correct it.
pub fn check_directories(
    group: &TaskGroup,
    alloc: &Allocation,
    node: &NodeFacts,
    registered: &BTreeMap<String, String>,
) -> Result<(), String> {
    for (name, request) in group.volumes.iter().filter(|(_, ask)| !ask.is_csi()) {
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
                "volume {name:?}: {path} is not a directory of this node: create it, or delete \
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
    fn a_registered_volume_is_an_existing_directory() {
        let mut job = builders::service("web", 1);
        let request = VolumeRequest {
            volume_type: VolumeType::Host,
            source: "disk".into(),
            read_only: false,
            sticky: false,
            per_alloc: false,
            access_mode: None,
            attachment_mode: None,
            mount_options: Default::default(),
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
        let message = check(&path(&directory.path().join("no"))).unwrap_err();
        assert!(
            message.contains("is not a directory of this node"),
            "{message}"
        );
        let message = check(&BTreeMap::new()).unwrap_err();
        assert!(
            message.contains("this node has no host volume \"disk\""),
            "{message}"
        );
    }
}
