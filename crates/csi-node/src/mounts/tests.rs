//! Mounts against the driver for directories. They need the rights of root.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use csi_test_kit::Settings;
use model::{CsiPluginTask, CsiPluginType};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::*;
use crate::layout::{PluginPaths, SOCKET};
use crate::registry::TaskKey;
use crate::supervision::supervise;
use crate::{Storage, sharing};

const LIMIT: Duration = Duration::from_secs(20);

/// A node with one plugin.
struct Fixture {
    root: tempfile::TempDir,
    storage: Storage,
    work: Vec<JoinHandle<()>>,
}

impl Drop for Fixture {
    fn drop(&mut self) {
        self.work.iter().for_each(JoinHandle::abort);
    }
}

fn is_root() -> bool {
    let is_root = nix::unistd::geteuid().is_root();
    if !is_root {
        eprintln!("skipped: mounts need the rights of root");
    }
    is_root
}

impl Fixture {
    async fn new() -> Self {
        Self::within(tempfile::tempdir().unwrap()).await
    }

    async fn within(root: tempfile::TempDir) -> Self {
        let storage = Storage::open(&root.path().join("csi"), "boot").unwrap();
        let mut fixture = Self {
            root,
            storage,
            work: Vec::new(),
        };
        fs::create_dir_all(fixture.system("volumes/vol-1")).unwrap();
        fs::create_dir_all(fixture.system("faults")).unwrap();
        fixture.start_plugin().await;
        fixture
    }

    fn system(&self, path: &str) -> PathBuf {
        self.root.path().join("system").join(path)
    }

    async fn start_plugin(&mut self) {
        let layout = &self.storage.layout;
        let socket_dir = layout.socket_dir(AllocId::from_random(9), 0);
        layout.create_for_plugin(&socket_dir, "dir").unwrap();
        let socket = socket_dir.join(SOCKET);
        let settings = Settings {
            root: self.system(""),
            node_id: "n1".to_owned(),
            stages: true,
            ..Settings::default()
        };
        let serving = socket.clone();
        self.work.push(tokio::spawn(async move {
            csi_test_kit::serve(settings, &serving).await.unwrap();
        }));
        let volumes = layout.volumes_of("dir");
        let paths = PluginPaths {
            on_node: volumes.clone(),
            in_task: volumes,
        };
        let task = CsiPluginTask {
            id: "dir".to_owned(),
            plugin_type: CsiPluginType::Monolith,
            health_timeout: LIMIT,
            ..CsiPluginTask::default()
        };
        let key = TaskKey {
            alloc_id: AllocId::from_random(9),
            task: "plugin".to_owned(),
        };
        let registry = Arc::clone(&self.storage.registry);
        self.work.push(tokio::spawn(async move {
            let (events, _reader) = tokio::sync::mpsc::channel(8);
            supervise(&registry, key, &task, &socket, paths, &events).await;
        }));
        let mut changes = self.storage.registry.changes();
        let healthy = changes.wait_for(|_| self.storage.registry.controller("dir").is_some());
        timeout(LIMIT, healthy).await.unwrap().unwrap();
    }

    fn fail(&self, method: &str, is_failing: bool) {
        let fault = self.system("faults").join(method);
        if is_failing {
            fs::write(fault, "fail").unwrap();
        } else {
            fs::remove_file(fault).unwrap();
        }
    }

    fn calls(&self, method: &str) -> usize {
        let calls = fs::read_to_string(self.system("calls")).unwrap_or_default();
        let mut methods = calls.lines().filter_map(|line| line.split(' ').nth(1));
        methods.by_ref().filter(|other| *other == method).count()
    }

    fn path(&self, alloc_id: AllocId) -> PathBuf {
        self.storage.mounts.paths(alloc_id)["data"].clone()
    }
}

fn mount() -> Mount {
    Mount {
        name: "data".to_owned(),
        namespace: "default".to_owned(),
        volume_id: "disk".to_owned(),
        external_id: "vol-1".to_owned(),
        plugin_id: "dir".to_owned(),
        usage: Use {
            access_mode: "multi-node-multi-writer".to_owned(),
            attachment_mode: "file-system".to_owned(),
            ..Use::default()
        },
        ..Mount::default()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_allocations_share_a_staged_volume_until_the_last_has_ended() {
    if !is_root() {
        return;
    }
    let fixture = Fixture::new().await;
    let mounts = &fixture.storage.mounts;
    let (one, two) = (AllocId::from_random(1), AllocId::from_random(2));
    mounts.mount(one, &mount()).await.unwrap();
    fs::write(fixture.path(one).join("file"), "text").unwrap();
    mounts.mount(two, &mount()).await.unwrap();
    let read = fs::read_to_string(fixture.path(two).join("file")).unwrap();
    assert_eq!(read, "text");
    let targets = [fixture.path(one), fixture.path(two)];
    mounts.unmount_all(one).await.unwrap();
    assert_eq!(fixture.calls("NodeUnstageVolume"), 0);
    assert!(!targets[0].exists() && sharing::is_mounted(&targets[1]).unwrap());
    mounts.unmount_all(two).await.unwrap();
    assert_eq!(fixture.calls("NodeUnstageVolume"), 1);
    assert!(!targets[1].exists());
    assert!(mounts.all().is_empty());
    // The data is the storage system's.
    assert!(fixture.system("volumes/vol-1/file").exists());
    // There is nothing left to undo.
    mounts.unmount_all(one).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_died_between_stage_and_publish_finds_what_it_left() {
    if !is_root() {
        return;
    }
    let mut fixture = Fixture::new().await;
    let alloc_id = AllocId::from_random(1);
    fixture.fail("NodePublishVolume", true);
    let failed = fixture.storage.mounts.mount(alloc_id, &mount()).await;
    let reason = failed.unwrap_err();
    assert!(reason.contains("out of order"), "{reason}");
    assert!(fixture.storage.mounts.paths(alloc_id).is_empty());
    // The next run of the agent.
    fixture.work.drain(..).for_each(|work| work.abort());
    fixture.storage = Storage::open(&fixture.root.path().join("csi"), "boot").unwrap();
    assert_eq!(fixture.storage.mounts.all(), [alloc_id]);
    let early = fixture.storage.mounts.unmount_all(alloc_id).await;
    let reason = early.unwrap_err();
    assert!(reason.contains("is not healthy on this node"), "{reason}");
    fixture.start_plugin().await;
    fixture.storage.mounts.unmount_all(alloc_id).await.unwrap();
    assert!(fixture.storage.mounts.all().is_empty());
    let staging = fixture.storage.layout.volumes_of("dir").join("staging");
    let mountinfo = fs::read_to_string("/proc/self/mountinfo").unwrap();
    assert!(
        !mountinfo.contains(&staging.display().to_string()),
        "{mountinfo}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_volume_that_is_mounted_again_stays_at_its_path_meanwhile() {
    if !is_root() {
        return;
    }
    let fixture = Fixture::new().await;
    let mounts = &fixture.storage.mounts;
    let alloc_id = AllocId::from_random(1);
    mounts.mount(alloc_id, &mount()).await.unwrap();
    let path = fixture.path(alloc_id);
    fixture.fail("NodeStageVolume", true);
    mounts.mount(alloc_id, &mount()).await.unwrap_err();
    assert_eq!(fixture.path(alloc_id), path);
    fixture.fail("NodeStageVolume", false);
    fixture.fail("NodeUnpublishVolume", true);
    mounts.unmount_all(alloc_id).await.unwrap_err();
    assert!(mounts.has(alloc_id));
    fixture.fail("NodeUnpublishVolume", false);
    mounts.unmount_all(alloc_id).await.unwrap();
    assert!(!mounts.has(alloc_id) && !path.exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_reboot_only_directories_are_left() {
    if !is_root() {
        return;
    }
    let mut fixture = Fixture::new().await;
    let alloc_id = AllocId::from_random(1);
    fixture
        .storage
        .mounts
        .mount(alloc_id, &mount())
        .await
        .unwrap();
    let path = fixture.path(alloc_id);
    fixture.work.drain(..).for_each(|work| work.abort());
    // A reboot does this.
    let staging = fixture
        .storage
        .layout
        .volumes_of("dir")
        .join("staging/default/disk");
    let staging = staging.join("rw-multi-node-multi-writer");
    for mounted in [&path, &staging] {
        nix::mount::umount2(mounted, nix::mount::MntFlags::empty()).unwrap();
    }
    fixture.storage = Storage::open(&fixture.root.path().join("csi"), "next").unwrap();
    fixture.storage.mounts.unmount_all(alloc_id).await.unwrap();
    assert!(!path.exists() && !staging.exists());
    assert!(fixture.storage.mounts.all().is_empty());
}
