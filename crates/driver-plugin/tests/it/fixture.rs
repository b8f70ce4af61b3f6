//! A node's plugins in a directory, without leftovers.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use driver_plugin::{PluginConfig, Plugins, Settings, Timing};
use driver_plugin_test_kit::control::CALLS;
use model::job::LogConfig;
use model::{AllocId, ExitResult};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use task_drivers::{
    AllocDirs, Driver, Recovery, StartError, SupervisorCommand, TaskConfig, TaskId,
};
use tempfile::TempDir;
use test_kit::wait_for;
use tokio::sync::mpsc;

pub(crate) const LIMIT: Duration = Duration::from_secs(30);
pub(crate) const FILE: &str = "stand-in-plugin";
pub(crate) const NAME: &str = "stand-in";

pub(crate) struct Fixture {
    folder: TempDir,
    pub(crate) config: PluginConfig,
    pub(crate) timing: Timing,
}

impl Fixture {
    /// A node with the stand-in as a plugin.
    pub(crate) fn new() -> Self {
        let fixture = Self::empty();
        fixture.add(FILE);
        fixture
    }

    pub(crate) fn empty() -> Self {
        let folder = tempfile::tempdir().unwrap();
        for name in ["plugins", "control", "alloc"] {
            fs::create_dir(folder.path().join(name)).unwrap();
        }
        let control = format!("control={}", folder.path().join("control").display());
        Self {
            folder,
            config: PluginConfig {
                args: vec![control],
                ..PluginConfig::default()
            },
            timing: Timing {
                start_limit: Duration::from_secs(10),
                quick_limit: Duration::from_secs(2),
                work_limit: Duration::from_secs(5),
                ready_limit: Duration::from_secs(10),
                ping_interval: Duration::from_millis(300),
                pings_missed_max: 2,
                backoff: (Duration::from_millis(50), Duration::from_millis(200)),
                end_limit: Duration::from_secs(2),
            },
        }
    }

    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    pub(crate) fn add(&self, file: &str) {
        symlink(stand_in(), self.path("plugins").join(file)).unwrap();
    }

    pub(crate) fn settings(&self) -> Settings {
        let files = fs::read_dir(self.path("plugins")).unwrap();
        let files = files.map(|file| file.unwrap().file_name().into_string().unwrap());
        Settings {
            plugin_dir: self.path("plugins"),
            plugins: files.map(|file| (file, self.config.clone())).collect(),
            state_dir: self.path("state"),
            node_id: "node-1".to_owned(),
            node_name: "one".to_owned(),
            supervisor: SupervisorCommand {
                program: stand_in(),
                args: vec!["task-supervisor".into()],
            },
            built_in: ["docker".to_owned()].into(),
            timing: self.timing,
        }
    }

    pub(crate) async fn start(&self) -> Plugins {
        Plugins::start(self.settings()).await
    }

    /// Starts the plugin, and returns its driver.
    pub(crate) async fn driver(&self) -> (Plugins, Arc<dyn Driver>) {
        let plugins = self.start().await;
        let driver = plugins.drivers().find(|(name, _)| *name == NAME);
        let (_, driver) = driver.unwrap_or_else(|| panic!("{:?}", plugins.attributes()));
        driver.refresh().await;
        (plugins, driver)
    }

    /// A task that runs `script` in a shell.
    pub(crate) fn task(&self, number: u128, script: &str) -> TaskConfig {
        let id = TaskId {
            alloc_id: AllocId::from_random(number),
            task: "web".to_owned(),
            attempt: 1,
        };
        let dirs = AllocDirs::new(&self.path("alloc"), id.alloc_id).task(&id.task);
        for directory in [&dirs.logs, &dirs.local] {
            fs::create_dir_all(directory).unwrap();
        }
        let config = json!({"command": "/bin/sh", "args": ["-c", script]});
        TaskConfig {
            config: object(config),
            dirs: Some(dirs),
            logs: LogConfig {
                max_files: 2,
                max_file_size_mib: 1,
                disabled: false,
            },
            ..TaskConfig::new(id)
        }
    }

    pub(crate) fn output(&self, id: &TaskId, stream: &str) -> String {
        let logs = AllocDirs::new(&self.path("alloc"), id.alloc_id).logs();
        fs::read_to_string(logs.join(format!("web.{stream}.0"))).unwrap_or_default()
    }

    /// Waits until the task has printed `text`.
    pub(crate) async fn said(&self, id: &TaskId, text: &str) {
        wait_for(&format!("{text:?} in the output"), LIMIT, async || {
            self.output(id, "stdout").contains(text).then_some(())
        })
        .await;
    }

    pub(crate) fn switch(&self, fault: &str, text: Option<&str>) {
        let path = self.path("control").join(fault);
        match text {
            Some(text) => fs::write(path, text).unwrap(),
            None => fs::remove_file(path).unwrap(),
        }
    }

    /// Returns how often a method was called.
    pub(crate) fn calls(&self, method: &str) -> usize {
        let calls = fs::read_to_string(self.path("control").join(CALLS)).unwrap_or_default();
        let methods = calls.lines().filter_map(|line| line.split(' ').next());
        methods.filter(|other| *other == method).count()
    }

    pub(crate) async fn is_called(&self, method: &str, times: usize) {
        wait_for(&format!("{times} calls of {method}"), LIMIT, async || {
            (self.calls(method) >= times).then_some(())
        })
        .await;
    }

    /// Returns the pids of the plugin's processes.
    pub(crate) fn plugin_pids(&self) -> Vec<i32> {
        self.pids(|line| line.contains("control=") && !line.contains("task-supervisor"))
    }

    /// Returns the pids of the tasks' shells.
    pub(crate) fn task_pids(&self) -> Vec<i32> {
        self.pids(|line| line.contains("stand-in-task"))
    }

    pub(crate) fn copier_pids(&self) -> Vec<i32> {
        self.pids(|line| line.contains("--copy-output"))
    }

    pub(crate) async fn kill_plugin(&self) {
        let old = self.plugin_pids();
        for pid in &old {
            kill(Pid::from_raw(*pid), Signal::SIGKILL).unwrap();
        }
        wait_for("the plugin's end", LIMIT, async || {
            let now = self.plugin_pids();
            (!old.iter().any(|pid| now.contains(pid))).then_some(())
        })
        .await;
    }

    fn pids(&self, is_wanted: impl Fn(&str) -> bool) -> Vec<i32> {
        let mark = self.folder.path().to_str().unwrap();
        let entries = fs::read_dir("/proc").unwrap().flatten();
        let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        pids.filter(|pid| {
            let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let line = String::from_utf8_lossy(&line).replace('\0', " ");
            line.contains(mark) && is_wanted(&line)
        })
        .collect()
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        for pid in self.pids(|_| true) {
            let _ = nix::sys::signal::killpg(Pid::from_raw(pid), Signal::SIGKILL);
            let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
        }
    }
}

pub(crate) fn object(value: Value) -> serde_json::Map<String, Value> {
    value.as_object().unwrap().clone()
}

pub(crate) async fn wait(driver: &dyn Driver, id: &TaskId) -> ExitResult {
    let (messages, _queue) = mpsc::channel(16);
    let waiting = driver.wait(id, &messages);
    tokio::time::timeout(LIMIT, waiting).await.unwrap().unwrap()
}

pub(crate) async fn recover(driver: &dyn Driver, config: &TaskConfig) -> Recovery {
    let at = model::Timestamp(1);
    driver.recover(config.clone(), at, at).await
}

pub(crate) fn problem(error: StartError) -> (String, bool) {
    match error {
        StartError::Failed {
            message,
            recoverable,
        } => (message, recoverable),
        StartError::Config(message) => (message, false),
    }
}

/// Returns the path of the example, which is built with the tests.
fn stand_in() -> PathBuf {
    let own = std::env::current_exe().unwrap();
    let profile: &Path = own.parent().unwrap().parent().unwrap();
    let path = profile.join("examples/stand-in-plugin");
    assert!(path.exists(), "build it: cargo test -p driver-plugin");
    path
}
