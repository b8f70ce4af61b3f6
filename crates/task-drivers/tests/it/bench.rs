//! Test bench: one driver in its own directory, without leftover processes.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use model::job::LogConfig;
use model::{AllocId, ExitResult, Timestamp};
use task_drivers::log_files::{self, LogStream};
use task_drivers::{
    AllocDirs, Driver, RawExec, RawExecSettings, Recovery, ResourceLimits, StartError,
    SupervisorCommand, TaskConfig, TaskDirs, TaskId,
};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};

/// Timeout of these tests; an idle machine takes milliseconds.
pub(crate) const LIMIT: Duration = Duration::from_secs(20);

pub(crate) struct Bench {
    folder: tempfile::TempDir,
    pub(crate) alloc_id: AllocId,
    pub(crate) settings: RawExecSettings,
    pub(crate) driver: RawExec,
}

impl Bench {
    pub(crate) fn new() -> Self {
        Self::with(|_| {})
    }

    /// Without control groups, as on a machine where the agent cannot create any.
    pub(crate) fn without_cgroups() -> Self {
        Self::with(|settings| settings.cgroup_parent = None)
    }

    pub(crate) fn with(edit: impl FnOnce(&mut RawExecSettings)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let supervisor = SupervisorCommand {
            program: PathBuf::from(env!("CARGO_BIN_EXE_task-supervisor")),
            args: Vec::new(),
        };
        let mut settings = RawExecSettings::new(supervisor, folder.path().join("tasks"));
        edit(&mut settings);
        let alloc_id = AllocId::from_random(u128::from_be_bytes(random()));
        let driver = RawExec::new(settings.clone());
        let bench = Self {
            folder,
            alloc_id,
            settings,
            driver,
        };
        let dirs = bench.dirs();
        for directory in [&dirs.logs, &dirs.local, &dirs.secrets, &dirs.tmp] {
            fs::create_dir_all(directory).unwrap();
        }
        bench
    }

    pub(crate) fn dirs(&self) -> TaskDirs {
        AllocDirs::new(&self.folder.path().join("alloc"), self.alloc_id).task("web")
    }

    pub(crate) fn id(&self, attempt: u32) -> TaskId {
        TaskId {
            alloc_id: self.alloc_id,
            task: "web".to_owned(),
            attempt,
        }
    }

    /// Returns the directory of an attempt.
    pub(crate) fn kept(&self, attempt: u32) -> PathBuf {
        let alloc = self.settings.state_dir.join(self.alloc_id.to_string());
        alloc.join("web").join(attempt.to_string())
    }

    pub(crate) fn config(&self, config: serde_json::Value) -> TaskConfig {
        TaskConfig {
            config: config.as_object().unwrap().clone(),
            env: [("NOMAD_TASK_NAME".to_owned(), "web".to_owned())].into(),
            dirs: Some(self.dirs()),
            resources: ResourceLimits {
                cpu_mhz: 100,
                memory_mib: 300,
                ..ResourceLimits::default()
            },
            logs: LogConfig {
                max_files: 10,
                max_file_size_mib: 10,
                disabled: false,
            },
            ..TaskConfig::new(self.id(1))
        }
    }

    pub(crate) fn shell(&self, script: &str) -> TaskConfig {
        self.config(serde_json::json!({"command": "/bin/sh", "args": ["-c", script]}))
    }

    pub(crate) async fn start(&self, script: &str) -> Result<(), StartError> {
        self.driver.start(self.shell(script)).await
    }

    pub(crate) async fn wait(&self) -> ExitResult {
        self.wait_with_messages().await.0
    }

    pub(crate) async fn wait_with_messages(&self) -> (ExitResult, Vec<String>) {
        let (sender, mut receiver) = mpsc::channel(100);
        let id = self.id(1);
        let waited = tokio::time::timeout(LIMIT, self.driver.wait(&id, &sender)).await;
        drop(sender);
        let mut messages = Vec::new();
        while let Some(message) = receiver.recv().await {
            messages.push(message);
        }
        (waited.expect("the task ends").unwrap(), messages)
    }

    pub(crate) async fn stop(&self, signal: &str, grace_ms: u64) {
        let id = self.id(1);
        self.driver
            .stop(&id, signal, Duration::from_millis(grace_ms))
            .await
            .unwrap();
    }

    /// Recovers the task as a new agent.
    pub(crate) async fn recover(&mut self) -> Recovery {
        self.driver = RawExec::new(self.settings.clone());
        let config = self.shell("exit 99");
        self.driver
            .recover(config, Timestamp::NEVER, Timestamp::NEVER)
            .await
    }

    pub(crate) fn output(&self, stream: LogStream) -> String {
        let logs = self.dirs().logs;
        let numbers = log_files::numbers(&logs, "web", stream).unwrap_or_default();
        let read = |number| fs::read(log_files::path(&logs, "web", stream, number)).unwrap();
        String::from_utf8(numbers.into_iter().flat_map(read).collect()).unwrap()
    }

    pub(crate) fn stdout(&self) -> String {
        self.output(LogStream::Stdout)
    }

    /// Waits until the task has printed `text`. Returns its output.
    pub(crate) async fn said(&self, text: &str) -> String {
        wait_for(&format!("the task to say {text:?}"), || {
            Some(self.stdout()).filter(|said| said.contains(text))
        })
        .await
    }

    /// Returns the pid in `state.json` of `role`: `task` or `supervisor`.
    pub(crate) fn pid(&self, role: &str) -> i32 {
        let text = fs::read(self.kept(1).join("state.json")).unwrap();
        let state: serde_json::Value = serde_json::from_slice(&text).unwrap();
        i32::try_from(state[role]["pid"].as_i64().unwrap()).unwrap()
    }

    /// Returns every process with this allocation's marker.
    pub(crate) fn processes(&self) -> Vec<i32> {
        let mark = format!("KAFILA_TASK_ID={}/", self.alloc_id);
        processes_with("environ", &mark)
    }

    pub(crate) fn supervisors(&self) -> Vec<i32> {
        processes_with("cmdline", &self.settings.state_dir.display().to_string())
    }

    /// Forgets the task, and checks that no process or record is left.
    pub(crate) async fn finish(self) {
        self.driver.forget(&self.id(1)).await.unwrap();
        assert!(!self.kept(1).exists());
        assert!(self.driver.leftovers().is_empty());
        assert_eq!(self.processes(), Vec::<i32>::new());
        wait_for("supervisors to be gone", || {
            self.supervisors().is_empty().then_some(())
        })
        .await;
    }
}

impl Drop for Bench {
    /// Cleans up after a failed test.
    fn drop(&mut self) {
        for pid in self.supervisors().into_iter().chain(self.processes()) {
            kill(pid, "KILL");
        }
    }
}

fn processes_with(file: &str, text: &str) -> Vec<i32> {
    let own = std::process::id().to_string();
    let entries = fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| Some(entry.ok()?.path()));
    let has_text = |path: &Path| {
        fs::read(path.join(file)).is_ok_and(|bytes| String::from_utf8_lossy(&bytes).contains(text))
    };
    entries
        .filter(|path| path.file_name().is_some_and(|name| *name != *own) && has_text(path))
        .filter_map(|path| path.file_name()?.to_str()?.parse().ok())
        .collect()
}

pub(crate) fn kill(pid: i32, signal: &str) {
    let signal: nix::sys::signal::Signal = format!("SIG{signal}").parse().unwrap();
    let _ = nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), signal);
}

/// Returns whether a process runs; a zombie does not.
pub(crate) fn is_alive(pid: i32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| {
        !stat
            .rsplit(") ")
            .next()
            .unwrap_or_default()
            .starts_with(['Z', 'X'])
    })
}

pub(crate) async fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + LIMIT;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < deadline, "waited in vain for {what}");
        sleep(Duration::from_millis(5)).await;
    }
}

fn random() -> [u8; 16] {
    let mut bytes = [0; 16];
    let mut file = fs::File::open("/dev/urandom").unwrap();
    std::io::Read::read_exact(&mut file, &mut bytes).unwrap();
    bytes
}
