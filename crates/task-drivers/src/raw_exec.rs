//! The driver `raw_exec`: plain processes of the host, without any isolation, each under a
//! [`crate::supervisor`] of its own.
//!
//! What is kept of an attempt is a directory, `<state>/<alloc id>/<task>/<attempt>`, made before
//! anything runs; everything else is found from there. In reading order: [`settings`],
//! [`options`] of a job, [`link`] speaks to a supervisor, [`recover`] finds processes again,
//! [`shared_cores`] keeps tasks off cores that others have for themselves.

mod link;
mod options;
mod recover;
mod settings;
mod shared_cores;

use std::collections::HashMap;
use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use model::{AllocId, ExitResult, Timestamp};
use tracing::{debug, warn};

use self::link::Link;
use self::options::Options;
pub use self::settings::{RawExecSettings, SupervisorCommand};
use self::shared_cores::SharedCores;
use crate::allowance::Allowance;
use crate::cgroup::{self, Limits, SharedCgroup, TaskCgroup};
use crate::config;
use crate::dirs::is_safe_name;
use crate::driver::{
    BoxFuture, Driver, DriverError, Fingerprint, Messages, Recovery, StartError, TaskConfig, TaskId,
};
use crate::process_id::boot_id;
use crate::supervisor::Mode;
use crate::supervisor::files::{self, INTENT, Intent, Logs, Survives};
use crate::supervisor::protocol::{Reply, Request, VERSION};

pub(crate) const NAME: &str = "raw_exec";
/// How long a supervisor may take to start a task and say so: it is one fork and two small files,
/// so only a disk or a machine in distress takes longer, and then waiting longer does not help.
const START_LIMIT: Duration = Duration::from_secs(10);
/// How long a supervisor may take for an answer that asks nothing of the task.
const ANSWER_LIMIT: Duration = Duration::from_secs(5);
/// What a stop may take beyond its grace: the supervisor's own limit for killed processes, 15 s,
/// and its answer.
const STOP_MARGIN: Duration = Duration::from_secs(20);
/// How long a supervisor that was forgotten may take to exit before it is left to be reaped later.
const REAP_LIMIT: Duration = Duration::from_secs(1);

/// Runs processes under supervisors. Dropping it leaves them running.
#[derive(Debug)]
pub struct RawExec {
    settings: RawExecSettings,
    /// The node's slice; `None`: no control groups here.
    slice: Option<PathBuf>,
    /// `None`: tasks that share cpu cannot be kept off cores.
    shared_cores: Option<SharedCores>,
    boot_id: String,
    /// The agent's own environment, without what tasks must not see.
    host_env: Vec<(String, String)>,
    held: Mutex<HashMap<TaskId, Held>>,
}

/// What this run of the agent holds of a task besides its directory.
#[derive(Debug, Default)]
struct Held {
    /// The supervisor, when this run of the agent started it, for its end to be reaped.
    supervisor: Option<Child>,
    /// A connection on which the supervisor has confirmed the start and will tell of the end.
    watch: Option<Link>,
}

impl RawExec {
    pub fn new(settings: RawExecSettings) -> Self {
        let slice = settings.cgroup_parent.as_deref().and_then(cgroup::prepare);
        let host_env = settings.host_env(std::env::vars());
        remove_empty(&settings.state_dir);
        if settings.enabled && !slice.as_deref().is_some_and(cgroup::limits_memory) {
            warn!(
                "tasks may use more memory than they ask for: there is no cgroup v2 with the memory \
                 controller for this process to hand out"
            );
        }
        Self::in_slice(settings, slice, host_env)
    }

    fn in_slice(
        settings: RawExecSettings,
        slice: Option<PathBuf>,
        host_env: Vec<(String, String)>,
    ) -> Self {
        let mut made = Self {
            settings,
            slice,
            shared_cores: None,
            boot_id: boot_id(),
            host_env,
            held: Mutex::default(),
        };
        let taken = made.leftovers().into_iter().filter_map(|id| {
            let intent = files::read::<Intent>(&made.directory(&id), INTENT).ok()??;
            Some((id, intent.limits.cores))
        });
        let taken: Vec<_> = taken.collect();
        let slice = made.slice.as_deref();
        made.shared_cores = slice.and_then(|slice| SharedCores::new(slice, taken.into_iter()));
        made
    }

    fn directory(&self, id: &TaskId) -> PathBuf {
        self.settings
            .state_dir
            .join(id.alloc_id.to_string())
            .join(&id.task)
            .join(id.attempt.to_string())
    }

    fn held(&self) -> MutexGuard<'_, HashMap<TaskId, Held>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn keep(&self, id: &TaskId, change: impl FnOnce(&mut Held)) {
        change(self.held().entry(id.clone()).or_default());
    }

    async fn start_task(&self, config: TaskConfig) -> Result<(), StartError> {
        let id = config.id.clone();
        if !self.settings.enabled {
            return Err(StartError::Config(
                "driver raw_exec is not enabled on this node".into(),
            ));
        }
        if !is_safe_name(&id.task) {
            return Err(StartError::Config(format!(
                "task name {:?} names no directory",
                id.task
            )));
        }
        let directory = self.directory(&id);
        if directory.join(INTENT).exists() {
            match self.find(&id).await {
                Recovery::Running { .. } | Recovery::Exited(_) => {
                    debug!(%id, "the task had been started before");
                    return Ok(());
                }
                Recovery::NotFound { .. } => {
                    self.remove(&id, &directory)
                        .await
                        .map_err(|error| StartError::Failed {
                            message: format!("cannot remove what is kept of {id}: {error}"),
                            recoverable: true,
                        })?;
                }
            }
        }
        let intent = self.intent(config)?;
        let failed = |what: &str, error: &dyn std::fmt::Display| StartError::Failed {
            message: format!("{what}: {error}"),
            recoverable: true,
        };
        make_directory(&directory)
            .and_then(|()| files::write(&directory, INTENT, &intent, Survives::Crash))
            .map_err(|error| failed("cannot write down what is to be started", &error))?;
        if let Some(shared) = &self.shared_cores {
            shared.take(&id, &intent.limits.cores);
        }
        let begun = match self.begin(&id, &directory, Mode::Start).await {
            Ok(reply) => reply,
            Err(error) => {
                let log = link::supervisor_log(&directory);
                self.clear(&id, &directory).await;
                return Err(failed(
                    "the task's supervisor failed",
                    &format!("{error} {log}"),
                ));
            }
        };
        match begun {
            Reply::Started { pid } => {
                debug!(%id, pid, "task started");
                Ok(())
            }
            Reply::StartFailed {
                message,
                recoverable,
            } => Err(StartError::Failed {
                message,
                recoverable,
            }),
            other => Err(failed(
                "the task's supervisor is confused",
                &format!("{other:?}"),
            )),
        }
    }

    fn intent(&self, config: TaskConfig) -> Result<Intent, StartError> {
        let options: Options = config::decode(NAME, config.config)?;
        let Some(dirs) = &config.dirs else {
            return Err(StartError::Config(
                "driver raw_exec needs a node with a disk".to_owned(),
            ));
        };
        let command = options.find_command(dirs)?;
        let user = options::user(&config.user)?;
        let mut env: std::collections::BTreeMap<String, String> =
            self.host_env.iter().cloned().collect();
        options.deny(&mut env);
        if let Some(user) = &user {
            env.extend(user.variables());
        }
        env.extend(config.env);
        let logs = (!config.logs.disabled).then(|| Logs {
            directory: dirs.logs.clone(),
            task: config.id.task.clone(),
            max_files: config.logs.max_files,
            max_file_bytes: u64::from(config.logs.max_file_size_mib) * 1024 * 1024,
        });
        Ok(Intent {
            version: VERSION,
            task_id: config.id.to_string(),
            boot_id: self.boot_id.clone(),
            command,
            args: options.args,
            env,
            work_dir: options.work_dir.unwrap_or_else(|| dirs.root.clone()),
            user: user.map(|user| files::User {
                uid: user.uid,
                gid: user.gid,
            }),
            cgroup_slice: self.slice.clone(),
            cgroup_name: self.cgroup_in_slice(&config.id, &config.allowance),
            limits: Limits::new(&config.allowance),
            oom_score_adj: options.oom_score_adj,
            logs,
        })
    }

    fn cgroup_in_slice(&self, id: &TaskId, allowance: &Allowance) -> String {
        let own = cgroup_name(id);
        if self.shared_cores.is_some() && allowance.cores.is_empty() {
            SharedCgroup::name_of(&own)
        } else {
            own
        }
    }

    /// Starts a supervisor and waits for its first word about the task.
    async fn begin(&self, id: &TaskId, directory: &Path, mode: Mode) -> io::Result<Reply> {
        let supervisor = link::spawn_supervisor(&self.settings.supervisor, directory, mode)?;
        self.keep(id, |held| held.supervisor = Some(supervisor));
        self.begin_watch(id, directory).await
    }

    /// Connects to a supervisor and waits for its first word about the task.
    async fn begin_watch(&self, id: &TaskId, directory: &Path) -> io::Result<Reply> {
        let mut link = Link::connect(directory).await?;
        link.send(&Request::Watch { version: VERSION }).await?;
        let reply = link.receive(START_LIMIT).await?;
        self.keep(id, |held| held.watch = Some(link));
        Ok(reply)
    }

    async fn wait_task(&self, id: &TaskId, messages: &Messages) -> Result<ExitResult, DriverError> {
        let tell = |text: String| {
            if messages.try_send(text).is_err() {
                debug!(%id, "nobody takes the driver's message");
            }
        };
        loop {
            let watch = self.held().get_mut(id).and_then(|held| held.watch.take());
            if let Some(mut watch) = watch {
                loop {
                    match watch.receive_whenever().await {
                        Ok(Reply::Message { text }) => tell(text),
                        Ok(Reply::Exited { exit }) => return Ok(exit),
                        Ok(_) => {}
                        Err(error) => {
                            debug!(%id, %error, "lost the connection to the supervisor");
                            break;
                        }
                    }
                }
            }
            match self.find(id).await {
                Recovery::Running { note } => note.into_iter().for_each(tell),
                Recovery::Exited(exit) => return Ok(exit),
                Recovery::NotFound { reason } => {
                    return Ok(ExitResult {
                        code: -1,
                        message: reason,
                        ..ExitResult::default()
                    });
                }
            }
        }
    }

    async fn stop_task(
        &self,
        id: &TaskId,
        signal: &str,
        grace: Duration,
    ) -> Result<(), DriverError> {
        let request = Request::Stop {
            version: VERSION,
            signal: signal.to_owned(),
            grace_ms: u64::try_from(grace.as_millis()).unwrap_or(u64::MAX),
        };
        let directory = self.directory(id);
        let reply = match link::ask(&directory, &request, grace + STOP_MARGIN).await {
            Ok(reply) => reply,
            Err(error) => {
                debug!(%id, %error, "cannot reach the supervisor, looking for the task");
                match self.find(id).await {
                    Recovery::Exited(_) | Recovery::NotFound { .. } => return Ok(()),
                    Recovery::Running { .. } => {
                        link::ask(&directory, &request, grace + STOP_MARGIN)
                            .await
                            .map_err(|source| DriverError::Supervisor {
                                id: id.clone(),
                                source,
                            })?
                    }
                }
            }
        };
        match reply {
            Reply::Refused { reason } => Err(DriverError::StillRuns {
                id: id.clone(),
                reason,
            }),
            _ => Ok(()),
        }
    }

    async fn forget_task(&self, id: &TaskId) -> Result<(), DriverError> {
        let directory = self.directory(id);
        let request = Request::Forget { version: VERSION };
        match link::ask(&directory, &request, ANSWER_LIMIT).await {
            Ok(Reply::Refused { reason }) => {
                return Err(DriverError::StillRuns {
                    id: id.clone(),
                    reason,
                });
            }
            Ok(_) => {}
            // Without a supervisor there is either an end, or a task to be found first.
            Err(_) => {
                if let Recovery::Running { .. } = self.find(id).await {
                    let reason = "it had lost its supervisor".to_owned();
                    return Err(DriverError::StillRuns {
                        id: id.clone(),
                        reason,
                    });
                }
            }
        }
        self.remove(id, &directory)
            .await
            .map_err(|source| DriverError::Forget {
                id: id.clone(),
                source,
            })
    }

    /// Removes the directory, and the supervisor that has just exited.
    async fn remove(&self, id: &TaskId, directory: &Path) -> io::Result<()> {
        let held = self.held().remove(id);
        if let Some(supervisor) = held.and_then(|held| held.supervisor) {
            reap(supervisor).await;
        }
        let cgroup = self
            .slice
            .as_deref()
            .map(|slice| TaskCgroup::find(slice, &cgroup_name(id)));
        if let Some(Err(error)) = cgroup.map(|cgroup| cgroup.remove()) {
            warn!(%id, %error, "cannot remove the task's control group");
        }
        match fs::remove_dir_all(directory) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        if let Some(shared) = &self.shared_cores {
            shared.give_back(id);
        }
        // Those of the task and the allocation, if this was their last attempt.
        for parent in directory.ancestors().skip(1).take(2) {
            if fs::remove_dir(parent).is_err() {
                break;
            }
        }
        Ok(())
    }
}

/// Waits for a supervisor that is about to exit, so that it does not stay in the process table.
async fn reap(mut supervisor: Child) {
    let reaped = offload::spawn(move || supervisor.wait());
    if tokio::time::timeout(REAP_LIMIT, reaped).await.is_err() {
        warn!("a supervisor that was forgotten does not exit");
    }
}

fn cgroup_name(id: &TaskId) -> String {
    format!("{}.{}.{}", id.alloc_id, id.task, id.attempt)
}

/// Makes the directory for nobody's eyes but ours: the task's environment holds secrets.
fn make_directory(directory: &Path) -> io::Result<()> {
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(directory)
}

/// Removes directories of allocations and tasks without an attempt in them: an earlier run of the
/// agent died between making or removing the one and the other. Nothing is started yet.
fn remove_empty(state_dir: &Path) {
    for alloc in list(state_dir) {
        for task in list(&alloc) {
            // One that is not empty stays.
            let _ = fs::remove_dir(task);
        }
        let _ = fs::remove_dir(alloc);
    }
}

fn list(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten();
    entries
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .collect()
}

fn name_of(path: &Path) -> Option<&str> {
    path.file_name()?.to_str()
}

impl Driver for RawExec {
    fn name(&self) -> &'static str {
        NAME
    }

    fn fingerprint(&self) -> Fingerprint {
        let enabled = self.settings.enabled;
        let slice = self.slice.as_deref();
        let limits_memory = slice.is_some_and(cgroup::limits_memory);
        let limits_memory = u8::from(limits_memory).to_string();
        let attributes = enabled.then(|| {
            [
                (format!("driver.{NAME}"), "1".to_owned()),
                (format!("driver.{NAME}.limits_memory"), limits_memory),
            ]
        });
        Fingerprint {
            detected: enabled,
            healthy: enabled,
            description: if enabled { "Healthy" } else { "disabled" }.to_owned(),
            attributes: attributes.into_iter().flatten().collect(),
        }
    }

    fn start(&self, config: TaskConfig) -> BoxFuture<'_, Result<(), StartError>> {
        Box::pin(self.start_task(config))
    }

    fn recover(
        &self,
        config: TaskConfig,
        _started_at: Timestamp,
        _now: Timestamp,
    ) -> BoxFuture<'_, Recovery> {
        Box::pin(async move { self.find(&config.id).await })
    }

    fn wait<'a>(
        &'a self,
        id: &'a TaskId,
        messages: &'a Messages,
    ) -> BoxFuture<'a, Result<ExitResult, DriverError>> {
        Box::pin(self.wait_task(id, messages))
    }

    fn stop<'a>(
        &'a self,
        id: &'a TaskId,
        signal: &'a str,
        grace: Duration,
    ) -> BoxFuture<'a, Result<(), DriverError>> {
        Box::pin(self.stop_task(id, signal, grace))
    }

    fn signal<'a>(
        &'a self,
        id: &'a TaskId,
        signal: &'a str,
    ) -> BoxFuture<'a, Result<(), DriverError>> {
        Box::pin(async move {
            let request = Request::Signal {
                version: VERSION,
                signal: signal.to_owned(),
            };
            let directory = self.directory(id);
            match link::ask(&directory, &request, ANSWER_LIMIT).await {
                Ok(Reply::Refused { reason }) => Err(DriverError::Signal {
                    id: id.clone(),
                    reason,
                }),
                Ok(_) => Ok(()),
                Err(source) => Err(DriverError::Supervisor {
                    id: id.clone(),
                    source,
                }),
            }
        })
    }

    fn forget<'a>(&'a self, id: &'a TaskId) -> BoxFuture<'a, Result<(), DriverError>> {
        Box::pin(self.forget_task(id))
    }

    fn leftovers(&self) -> Vec<TaskId> {
        let allocs = list(&self.settings.state_dir);
        let ids = allocs
            .iter()
            .filter_map(|alloc| name_of(alloc)?.parse().ok());
        ids.flat_map(|alloc_id| self.leftovers_of(alloc_id))
            .collect()
    }

    fn leftovers_of(&self, alloc_id: AllocId) -> Vec<TaskId> {
        let mut found = Vec::new();
        for task in list(&self.settings.state_dir.join(alloc_id.to_string())) {
            for attempt in list(&task) {
                let number = name_of(&attempt).and_then(|name| name.parse().ok());
                if let (Some(task), Some(attempt)) = (name_of(&task), number) {
                    found.push(TaskId {
                        alloc_id,
                        task: task.to_owned(),
                        attempt,
                    });
                }
            }
        }
        found
    }
}

#[cfg(test)]
mod tests;
