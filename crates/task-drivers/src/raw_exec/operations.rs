//! Operations of the driver: start, wait, stop, signal, forget.

use std::collections::BTreeMap;
use std::time::Duration;

use model::{AllocId, ExitResult, Timestamp};
use tracing::debug;

use super::link;
use super::options::Options;
use super::tasks::{RawExec, cgroup_name, make_directory};
use crate::cgroup::{self, Limits, SharedCgroup};
use crate::command::{ExecCommand, ExecIo};
use crate::config;
use crate::dirs::is_safe_name;
use crate::driver::{
    BoxFuture, Driver, DriverError, Fingerprint, Messages, NetworkSupport, Recovery, StartError,
    TaskConfig, TaskId,
};
use crate::resource_limits::ResourceLimits;
use crate::supervisor::files::{self, Durability, Logs, START_REQUEST, StartRequest};
use crate::supervisor::mode::Mode;
use crate::supervisor::protocol::{Reply, Request, VERSION};
use crate::usage::Usage;
use crate::user;

/// The driver's name in jobs.
const NAME: &str = "raw_exec";
/// Timeout for replies that do not depend on the task.
const ANSWER_LIMIT: Duration = Duration::from_secs(5);
/// Timeout of a stop beyond its grace: the supervisor's own limit for killed processes, 15 s, and
/// its reply.
const STOP_MARGIN: Duration = Duration::from_secs(20);

impl RawExec {
    pub(super) async fn start_task(&self, config: TaskConfig) -> Result<(), StartError> {
        if !self.settings.enabled {
            return Err(StartError::Config(
                "driver raw_exec is not enabled on this node".into(),
            ));
        }
        self.start_with(config, |config| self.request(config)).await
    }

    /// Starts the task that `request` makes of `config`, unless it was started before.
    pub(crate) async fn start_with(
        &self,
        config: TaskConfig,
        request: impl FnOnce(TaskConfig) -> Result<StartRequest, StartError>,
    ) -> Result<(), StartError> {
        let id = config.id.clone();
        if !is_safe_name(&id.task) {
            return Err(StartError::Config(format!(
                "task name {:?} is not a directory name",
                id.task
            )));
        }
        let directory = self.directory(&id);
        if directory.join(START_REQUEST).exists() {
            match self.find(&id).await {
                Recovery::Running { .. } | Recovery::Exited(_) => {
                    debug!(%id, "the task was started before");
                    return Ok(());
                }
                Recovery::NotFound { .. } => {
                    self.remove(&id, &directory)
                        .await
                        .map_err(|error| StartError::Failed {
                            message: format!("cannot remove the earlier state of {id}: {error}"),
                            recoverable: true,
                        })?;
                }
            }
        }
        let request = request(config)?;
        let failed = |what: &str, error: &dyn std::fmt::Display| StartError::Failed {
            message: format!("{what}: {error}"),
            recoverable: true,
        };
        make_directory(&directory)
            .and_then(|()| files::write(&directory, START_REQUEST, &request, Durability::Crash))
            .map_err(|error| failed("cannot write the task's intent.json", &error))?;
        if let Some(shared) = &self.shared_cores {
            shared.dedicate(&id, &request.limits.cores);
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
                "the task's supervisor sent an unexpected reply",
                &format!("{other:?}"),
            )),
        }
    }

    pub(super) fn request(&self, config: TaskConfig) -> Result<StartRequest, StartError> {
        let logs = config
            .dirs
            .as_ref()
            .and_then(|dirs| Logs::of(&config, dirs));
        let options: Options = config::decode(NAME, config.config)?;
        let Some(dirs) = &config.dirs else {
            return Err(StartError::Config(
                "driver raw_exec needs a node with a disk".to_owned(),
            ));
        };
        let command = options.find_command(dirs)?;
        let user = user::find(&config.user)?;
        let mut env: BTreeMap<String, String> = self.host_env.iter().cloned().collect();
        options.deny(&mut env);
        if let Some(user) = &user {
            env.extend(user.variables());
            user.own(&dirs.secrets)?;
        }
        env.extend(config.env);
        Ok(StartRequest {
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
            cgroup_name: self.cgroup_in_slice(&config.id, &config.resources),
            limits: Limits::new(&config.resources),
            oom_score_adj: options.oom_score_adj,
            logs,
            network: config.network,
            isolation: None,
        })
    }

    pub(crate) fn cgroup_in_slice(&self, id: &TaskId, resources: &ResourceLimits) -> String {
        let own = cgroup_name(id);
        if self.shared_cores.is_some() && resources.cores.is_empty() {
            SharedCgroup::name_of(&own)
        } else {
            own
        }
    }

    async fn wait_task(&self, id: &TaskId, messages: &Messages) -> Result<ExitResult, DriverError> {
        let publish = |text: String| {
            if messages.try_send(text).is_err() {
                debug!(%id, "the queue of driver messages is full");
            }
        };
        loop {
            let watch = self
                .attached()
                .get_mut(id)
                .and_then(|attached| attached.watch.take());
            if let Some(mut watch) = watch {
                loop {
                    match watch.receive_unbounded().await {
                        Ok(Reply::Message { text }) => publish(text),
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
                Recovery::Running { note } => note.into_iter().for_each(publish),
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
                debug!(%id, %error, "cannot reach the supervisor; looking for the task");
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
            // Without a supervisor the task has either ended, or gets a new supervisor first.
            Err(_) => {
                if let Recovery::Running { .. } = self.find(id).await {
                    let reason = "its supervisor was lost and replaced".to_owned();
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
}

impl Driver for RawExec {
    fn name(&self) -> &'static str {
        NAME
    }

    fn network_support(&self) -> NetworkSupport {
        NetworkSupport::Joins
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

    fn exec<'a>(
        &'a self,
        id: &'a TaskId,
        command: ExecCommand,
        io: ExecIo,
    ) -> BoxFuture<'a, Result<i32, DriverError>> {
        Box::pin(self.exec_beside(id, command, io))
    }

    fn forget<'a>(&'a self, id: &'a TaskId) -> BoxFuture<'a, Result<(), DriverError>> {
        Box::pin(self.forget_task(id))
    }

    fn read_usage(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.read_processes())
    }

    fn usage(&self, id: &TaskId) -> Option<Usage> {
        self.task_usage(id)
    }

    fn leftovers(&self) -> Vec<TaskId> {
        self.kept()
    }

    fn leftovers_of(&self, alloc_id: AllocId) -> Vec<TaskId> {
        self.kept_of(alloc_id)
    }
}
