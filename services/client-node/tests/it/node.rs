//! A node under test, in this process or in its own, without leftovers.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use client_node::{App, Config};
use model::job::RestartMode;
use model::{AllocId, Job};
use service_kit::CancellationToken;
use tempfile::TempDir;
use test_kit::{builders, wait_for};
use tokio::task::JoinHandle;

use crate::gateway::{Cluster, Gateway, LIMIT};

/// A data directory and the processes in it.
pub(crate) struct Place {
    folder: TempDir,
}

impl Place {
    pub(crate) fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn config(&self, gateways: &[&str]) -> Config {
        let mut config = Config {
            gateways: gateways
                .iter()
                .map(|gateway| (*gateway).to_owned())
                .collect(),
            data_dir: Some(self.path().to_owned()),
            tls: service_kit::TlsConfig::insecure(),
            ..Config::default()
        };
        let agent = env!("CARGO_BIN_EXE_client-node");
        config.drivers.supervisor = vec![agent.to_owned(), "task-supervisor".to_owned()];
        config.artifact.helper = vec![agent.to_owned(), "artifact-helper".to_owned()];
        // The disk of the machine may be nearly full.
        config.gc.disk_usage_threshold = 100;
        config.gc.inode_usage_threshold = 100;
        config
    }

    /// The output of a task named `server`.
    pub(crate) fn output(&self, id: AllocId) -> String {
        let path = self
            .path()
            .join(format!("alloc/{id}/alloc/logs/server.stdout.0"));
        fs::read_to_string(path).unwrap_or_default()
    }

    /// Waits until the task has printed `text`. Returns its output.
    pub(crate) async fn said(&self, id: AllocId, text: &str) -> String {
        let what = format!("{text:?} in the output");
        wait_for(&what, LIMIT, async || {
            Some(self.output(id)).filter(|output| output.contains(text))
        })
        .await
    }

    /// Waits for the pid that the task prints as `pid <number>`.
    pub(crate) async fn pid(&self, id: AllocId) -> i32 {
        let said = self.said(id, "\n").await;
        let number = said
            .lines()
            .find_map(|line| line.strip_prefix("pid "))
            .unwrap();
        number.parse().unwrap()
    }

    /// Every process that was started below the directory: supervisors and tasks.
    pub(crate) fn processes(&self) -> Vec<i32> {
        let mark = self.path().to_str().unwrap().to_owned();
        let own = std::process::id().to_string();
        let entries = fs::read_dir("/proc")
            .unwrap()
            .filter_map(|entry| Some(entry.ok()?.path()));
        let belongs = |path: &PathBuf| {
            ["cmdline", "environ"].iter().any(|file| {
                let bytes = fs::read(path.join(file)).unwrap_or_default();
                String::from_utf8_lossy(&bytes).contains(&mark)
            })
        };
        entries
            .filter(|path| path.file_name().is_some_and(|name| *name != *own) && belongs(path))
            .filter_map(|path| path.file_name()?.to_str()?.parse().ok())
            .filter(|pid| is_alive(*pid))
            .collect()
    }

    /// Returns the records of attempts.
    pub(crate) fn kept_of_tasks(&self) -> Vec<PathBuf> {
        let allocs = list(&self.path().join("client/tasks"));
        let tasks = allocs.iter().flat_map(|alloc| list(alloc));
        tasks.flat_map(|task| list(&task)).collect()
    }

    /// The log of an agent in a process of its own: beside the directory, which tests look through.
    fn agent_log(&self) -> PathBuf {
        self.path().with_extension("agent.log")
    }

    pub(crate) fn agent_said(&self, text: &str) -> bool {
        fs::read_to_string(self.agent_log()).is_ok_and(|log| log.contains(text))
    }

    pub(crate) fn alloc_dirs(&self) -> Vec<PathBuf> {
        list(&self.path().join("alloc"))
    }

    /// Waits until only the agent is left, which also names the directory.
    pub(crate) async fn is_empty_but(&self, agent: &Process) {
        let agent = i32::try_from(agent.0.id()).unwrap();
        wait_for(
            "every process but the agent to be gone",
            LIMIT,
            async || {
                self.processes()
                    .iter()
                    .all(|pid| *pid == agent)
                    .then_some(())
            },
        )
        .await;
    }

    pub(crate) async fn is_empty(&self) {
        wait_for("every process to be gone", LIMIT, async || {
            self.processes().is_empty().then_some(())
        })
        .await;
    }
}

impl Drop for Place {
    /// Cleans up after a failed test, but for the agent's log.
    fn drop(&mut self) {
        if !std::thread::panicking() {
            let _ = fs::remove_file(self.agent_log());
        }
        for pid in self.processes() {
            kill(pid, "KILL");
        }
    }
}

fn list(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).collect()
}

pub(crate) fn kill(pid: i32, signal: &str) {
    let signal: nix::sys::signal::Signal = format!("SIG{signal}").parse().unwrap();
    let _ = nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), signal);
}

pub(crate) fn is_alive(pid: i32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| {
        !stat
            .rsplit(") ")
            .next()
            .unwrap_or_default()
            .starts_with(['Z', 'X'])
    })
}

/// A node in this process.
pub(crate) struct Running {
    pub(crate) address: String,
    pub(crate) metrics: std::net::SocketAddr,
    drain: CancellationToken,
    ended: JoinHandle<Result<(), client_node::Error>>,
}

impl Running {
    pub(crate) async fn start(config: Config) -> Self {
        let app = App::build(config).await.unwrap();
        let drain = CancellationToken::new();
        let address = app.address().to_owned();
        let metrics = app.metrics_address().unwrap();
        let ended = tokio::spawn(app.run(drain.clone()));
        Self {
            address,
            metrics,
            drain,
            ended,
        }
    }

    pub(crate) async fn stop(self) {
        self.drain.cancel();
        tokio::time::timeout(LIMIT, self.ended)
            .await
            .unwrap()
            .unwrap()
            .unwrap();
    }
}

/// A node in a process of its own, killed when dropped.
pub(crate) struct Process(Child);

impl Process {
    pub(crate) fn start(place: &Place, gateway: &str) -> Self {
        Self::start_with(place, gateway, &[])
    }

    pub(crate) fn start_with(place: &Place, gateway: &str, settings: &[(&str, &str)]) -> Self {
        let log = place.agent_log();
        let log = fs::File::options()
            .create(true)
            .append(true)
            .open(log)
            .unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_client-node"));
        command
            .env("KAFILA_CLIENT_NODE__GATEWAYS", gateway)
            .env("KAFILA_CLIENT_NODE__DATA_DIR", place.path())
            .env("KAFILA_CLIENT_NODE__TLS__INSECURE", "true")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log);
        for (name, value) in settings {
            command.env(format!("KAFILA_CLIENT_NODE__{name}"), value);
        }
        Self(command.spawn().unwrap())
    }

    pub(crate) fn signal(&self, signal: &str) {
        kill(i32::try_from(self.0.id()).unwrap(), signal);
    }

    /// Kills only the agent, with SIGKILL.
    pub(crate) fn kill(mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }

    /// Waits for its end.
    pub(crate) async fn ended(mut self) -> i32 {
        wait_for("the agent to end", LIMIT, async || {
            self.0
                .try_wait()
                .unwrap()
                .map(|status| status.code().unwrap_or(-1))
        })
        .await
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A service whose one task runs a shell script.
pub(crate) fn service(script: &str) -> Job {
    shell(builders::service("web", 1), script)
}

/// A batch job whose one task runs a shell script and is not restarted.
pub(crate) fn batch(script: &str) -> Job {
    let mut job = shell(builders::batch("sum", 1), script);
    job.task_groups[0].tasks[0].restart.attempts = 0;
    job
}

fn shell(mut job: Job, script: &str) -> Job {
    let task = &mut job.task_groups[0].tasks[0];
    task.driver = "raw_exec".to_owned();
    let config = serde_json::json!({"command": "/bin/sh", "args": ["-c", script]});
    task.config = config.as_object().unwrap().clone();
    task.restart.mode = RestartMode::Fail;
    task.restart.delay = Duration::from_millis(100);
    stored(job)
}

/// A job with one simulated task.
pub(crate) fn mock(config: serde_json::Value) -> Job {
    let mut job = builders::service("mock", 1);
    job.task_groups[0].tasks[0].config = config.as_object().unwrap().clone();
    stored(job)
}

/// A job as a gateway would store it, with every default.
pub(crate) fn stored(job: Job) -> Job {
    let spec = proto::v1::Job::from(&job);
    jobspec::canonicalise(&spec, job.submit_time).unwrap().job
}

/// A cluster with one gateway and one node that has registered.
pub(crate) async fn start(place: &Place) -> (Cluster, Gateway, Running) {
    let cluster = Cluster::new();
    let gateway = Gateway::start(&cluster).await;
    let node = Running::start(place.config(&[&gateway.address])).await;
    cluster
        .until_fact("the node to register", |facts| {
            facts.registrations.last().map(|_| ())
        })
        .await;
    (cluster, gateway, node)
}
