//! Tasks of the stand-in: processes that outlive it. A shell around each writes its exit code to a file.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use driver_plugin::wire::drivers::{TaskConfig, TaskHandle, TaskState};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};
use tokio::process::Command;
use tokio::time::sleep;
use tonic::Status;

/// Source: the text of Nomad's public library for drivers.
const NOT_FOUND: &str = "task not found for given id";
/// Interval of looks at a task.
const LOOK: Duration = Duration::from_millis(20);

/// A task, as another process of the plugin needs to know it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Task {
    /// The process group of the task.
    pub(crate) pid: i32,
    /// The file with the exit code.
    exit: PathBuf,
}

#[derive(Debug, Default)]
pub(crate) struct Tasks(Mutex<HashMap<String, Task>>);

impl Tasks {
    pub(crate) fn get(&self, id: &str) -> Result<Task, Status> {
        let tasks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        tasks
            .get(id)
            .cloned()
            .ok_or_else(|| Status::unknown(NOT_FOUND))
    }

    pub(crate) fn put(&self, id: &str, task: Option<Task>) {
        let mut tasks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match task {
            Some(task) => drop(tasks.insert(id.to_owned(), task)),
            None => drop(tasks.remove(id)),
        }
    }
}

impl Task {
    /// Starts the command of a decoded config block.
    pub(crate) fn start(config: &TaskConfig, block: &serde_json::Value) -> Result<Self, Status> {
        let failed = |error: std::io::Error| Status::unknown(format!("cannot start: {error}"));
        let command = block["command"].as_str().unwrap_or_default();
        let args = block["args"].as_array().cloned().unwrap_or_default();
        let args = args.iter().filter_map(|arg| arg.as_str());
        let directory = Path::new(&config.alloc_dir).join(&config.name);
        let exit = directory.join(format!("exit-{}", config.id.replace('/', "-")));
        let pipe = |path: &str| fs::OpenOptions::new().write(true).open(path);
        let vars = block["vars"].as_object().cloned().unwrap_or_default();
        let vars = vars
            .into_iter()
            .map(|(name, value)| (name, value.as_str().unwrap_or_default().to_owned()));
        let mut child = Command::new("/bin/sh")
            // The shell stays for the exit code, and takes no signal from the group.
            .args(["-c", r#"trap : INT TERM HUP USR1 USR2; exit=$1; shift; "$@"; echo $? > "$exit.new"; mv "$exit.new" "$exit""#])
            .arg("stand-in-task")
            .arg(&exit)
            .arg(command)
            .args(args)
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .envs(&config.env)
            .envs(vars)
            .current_dir(&directory)
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(pipe(&config.stdout_path).map_err(failed)?)
            .stderr(pipe(&config.stderr_path).map_err(failed)?)
            .spawn()
            .map_err(failed)?;
        let pid = child.id().and_then(|pid| i32::try_from(pid).ok());
        let pid = pid.ok_or_else(|| Status::unknown("it has ended already"))?;
        tokio::spawn(async move { child.wait().await });
        Ok(Self { pid, exit })
    }

    pub(crate) fn handle(&self, config: TaskConfig) -> TaskHandle {
        TaskHandle {
            version: 1,
            config: Some(config),
            state: TaskState::Running.into(),
            driver_state: serde_json::to_vec(self).unwrap_or_default(),
        }
    }

    pub(crate) fn of_handle(handle: &TaskHandle) -> Result<Self, Status> {
        let task: Self = serde_json::from_slice(&handle.driver_state)
            .map_err(|error| Status::unknown(format!("the handle is no task: {error}")))?;
        if task.exit_code().is_none() && !task.is_alive() {
            return Err(Status::unknown("its processes are gone"));
        }
        Ok(task)
    }

    pub(crate) fn exit_code(&self) -> Option<i32> {
        fs::read_to_string(&self.exit).ok()?.trim().parse().ok()
    }

    pub(crate) fn is_alive(&self) -> bool {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.pid)).unwrap_or_default();
        let state = stat
            .rsplit(')')
            .next()
            .and_then(|rest| rest.trim().chars().next());
        state.is_some_and(|state| state != 'Z')
    }

    /// Waits for its end. Without an exit code it was killed.
    pub(crate) async fn ended(&self) -> i32 {
        loop {
            if let Some(code) = self.exit_code() {
                return code;
            }
            if !self.is_alive() {
                return self.exit_code().unwrap_or(137);
            }
            sleep(LOOK).await;
        }
    }

    pub(crate) fn signal(&self, signal: &str) -> Result<(), Status> {
        let signal: Signal = signal
            .parse()
            .map_err(|_| Status::invalid_argument(format!("{signal:?} is no signal")))?;
        killpg(Pid::from_raw(self.pid), signal).map_err(|error| Status::unknown(error.to_string()))
    }
}
