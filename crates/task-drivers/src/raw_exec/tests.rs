//! Control groups of tasks, with plain files in place of the kernel's.

use std::fs;
use std::path::Path;

use model::AllocId;
use tempfile::TempDir;

use super::tasks::make_directory;
use super::*;
use crate::dirs::AllocDirs;
use crate::driver::{TaskConfig, TaskId};
use crate::resource_limits::ResourceLimits;
use crate::supervisor::files::{self, Durability, START_REQUEST};

/// A slice with the files that the driver reads.
fn slice() -> TempDir {
    let slice = tempfile::tempdir().unwrap();
    fs::create_dir(slice.path().join("shared.slice")).unwrap();
    fs::write(slice.path().join("cpuset.cpus.effective"), "0-3\n").unwrap();
    fs::write(slice.path().join("shared.slice/cpuset.cpus"), "").unwrap();
    slice
}

fn shared(slice: &TempDir) -> String {
    fs::read_to_string(slice.path().join("shared.slice/cpuset.cpus")).unwrap()
}

/// A driver whose supervisors cannot be started.
fn driver(state_dir: &Path, slice: &TempDir) -> RawExec {
    let supervisor = SupervisorCommand {
        program: "/nowhere/supervisor".into(),
        args: Vec::new(),
    };
    let settings = RawExecSettings::new(supervisor, state_dir.to_owned());
    RawExec::in_slice(settings, Some(slice.path().to_owned()), Vec::new())
}

fn config(state_dir: &Path, number: u128, cores: &[u16]) -> TaskConfig {
    let id = TaskId {
        alloc_id: AllocId::from_random(number),
        task: "web".into(),
        attempt: 1,
    };
    let command = ("command".to_owned(), "/bin/true".into());
    TaskConfig {
        config: [command].into_iter().collect(),
        dirs: Some(AllocDirs::new(state_dir, id.alloc_id).task("web")),
        resources: ResourceLimits {
            cpu_mhz: 100,
            cores: cores.to_vec(),
            memory_mib: 10,
            ..ResourceLimits::default()
        },
        logs: test_kit::builders::task("web").logs,
        ..TaskConfig::new(id)
    }
}

#[test]
fn only_tasks_that_share_cpu_are_in_the_shared_group() {
    let (state_dir, slice) = (tempfile::tempdir().unwrap(), slice());
    let driver = driver(state_dir.path(), &slice);
    let name = |number, cores: &[u16]| {
        let request = driver.request(config(state_dir.path(), number, cores));
        request.unwrap().cgroup_name
    };
    assert!(name(1, &[]).starts_with("shared.slice/"));
    assert!(!name(2, &[1]).contains('/'));
    // Without the cpuset controller, every task gets a group of its own.
    fs::remove_file(slice.path().join("shared.slice/cpuset.cpus")).unwrap();
    let driver = super::tests::driver(state_dir.path(), &slice);
    let request = driver.request(config(state_dir.path(), 1, &[])).unwrap();
    assert!(!request.cgroup_name.contains('/'));
}

#[tokio::test]
async fn scenario_075_dedicated_cores_leave_the_shared_group_before_the_start_and_return_when_the_task_is_forgotten()
 {
    let (state_dir, slice) = (tempfile::tempdir().unwrap(), slice());
    let first = driver(state_dir.path(), &slice);
    assert_eq!(
        shared(&slice),
        "0-3",
        "the group of an earlier agent is rewritten"
    );
    let (one, other) = (
        config(state_dir.path(), 1, &[1]),
        config(state_dir.path(), 2, &[2, 3]),
    );
    let id = one.id.clone();
    // Its supervisor fails, so it is not forgotten until the agent says so.
    first.start_task(one.clone()).await.unwrap_err();
    assert_eq!(shared(&slice), "0,2-3");
    // A restarted agent finds the existing record.
    let directory = first.directory(&other.id);
    make_directory(&directory).unwrap();
    let request = first.request(other.clone()).unwrap();
    files::write(&directory, START_REQUEST, &request, Durability::Crash).unwrap();
    let second = driver(state_dir.path(), &slice);
    assert_eq!(shared(&slice), "0");
    second.remove(&id, &second.directory(&id)).await.unwrap();
    assert_eq!(shared(&slice), "0-1");
    second.remove(&other.id, &directory).await.unwrap();
    assert_eq!(shared(&slice), "0-3");
}
