//! Operations of the driver: what differs from plain processes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::capabilities;
use super::options::{Options, is_private};
use super::settings::{DEFAULT_CAPS, ExecConfig, wrong_path};
use crate::cgroup::{self, Limits};
use crate::command::{ExecCommand, ExecIo};
use crate::config;
use crate::dirs::TaskDirs;
use crate::driver::{
    BoxFuture, Driver, DriverError, Fingerprint, MountSupport, NetworkSupport, StartError,
    TaskConfig, TaskId, TaskMount,
};
use crate::raw_exec::RawExec;
use crate::supervisor::files::{Isolation, Logs, StartRequest, User, Volume};
use crate::supervisor::isolation;
use crate::supervisor::protocol::VERSION;
use crate::user;

/// The driver's name in jobs.
const NAME: &str = "exec";
/// The user of tasks that name none. Source: Nomad's public default.
const DEFAULT_USER: &str = "nobody";
/// Directories of programs, for tasks without a variable `PATH`.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// What a driver of isolated processes gives its tasks beside their options.
#[derive(Clone, Debug)]
pub(crate) struct IsolationDefaults {
    /// The user of tasks that name none.
    pub(crate) user: &'static str,
    /// Capabilities that tasks have, within those that the node allows.
    pub(crate) capabilities: &'static [&'static str],
    /// Path in the task → path of the node, mounted read-only.
    pub(crate) host: BTreeMap<PathBuf, PathBuf>,
    /// Devices of the node, beside those that every task has.
    pub(crate) devices: Vec<PathBuf>,
}

/// Runs isolated processes under supervisors. Dropping it leaves them running.
#[derive(Debug)]
pub struct Exec {
    config: ExecConfig,
    processes: RawExec,
    /// Why this node cannot isolate tasks; found by the first fingerprint.
    lacks: Mutex<Option<Option<String>>>,
}

impl Exec {
    /// The records of its tasks are in `state_dir`; control groups and cores are shared with
    /// `raw_exec`.
    pub fn new(config: ExecConfig, state_dir: PathBuf, raw_exec: &RawExec) -> Self {
        Self {
            config,
            processes: raw_exec.beside(state_dir),
            lacks: Mutex::default(),
        }
    }

    /// Returns what the node lacks; `None`: nothing.
    pub(crate) fn lacks(&self) -> Option<String> {
        let mut known = self.lacks.lock().unwrap_or_else(PoisonError::into_inner);
        known.get_or_insert_with(|| self.find_lack()).clone()
    }

    fn find_lack(&self) -> Option<String> {
        if !nix::unistd::geteuid().is_root() {
            return Some("the agent does not run as root".to_owned());
        }
        if !self.config.without_limits
            && let Some(lack) = self.lacks_limits()
        {
            return Some(lack);
        }
        isolation::probe().err()
    }

    pub(crate) fn lacks_limits(&self) -> Option<String> {
        let Some(slice) = &self.processes.slice else {
            let text =
                "there is no writable cgroup version 2 for the agent (drivers.cgroup_parent)";
            return Some(text.to_owned());
        };
        let missing = cgroup::missing_controllers(slice);
        (!missing.is_empty()).then(|| {
            format!(
                "cgroup version 2 does not delegate the controllers {} to {}",
                missing.join(" and "),
                slice.display()
            )
        })
    }

    async fn start_task(&self, mut config: TaskConfig) -> Result<(), StartError> {
        if !self.config.enabled {
            let text = "driver exec is not enabled on this node";
            return Err(StartError::Config(text.to_owned()));
        }
        let options = config::decode(NAME, std::mem::take(&mut config.config))?;
        self.start_isolated(config, options, &self.isolation_defaults())
            .await
    }

    /// Returns what tasks of the driver itself have.
    pub(crate) fn isolation_defaults(&self) -> IsolationDefaults {
        IsolationDefaults {
            user: DEFAULT_USER,
            capabilities: &DEFAULT_CAPS,
            host: self.config.host_paths(),
            devices: Vec::new(),
        }
    }

    /// Starts an isolated task; its `config` block is read already.
    pub(crate) async fn start_isolated(
        &self,
        config: TaskConfig,
        options: Options,
        defaults: &IsolationDefaults,
    ) -> Result<(), StartError> {
        if let Some(lack) = self.lacks() {
            return Err(StartError::Failed {
                message: format!("this node cannot isolate tasks: {lack}"),
                recoverable: false,
            });
        }
        let start = self
            .processes
            .start_with(config, |config| self.request(config, options, defaults));
        start.await
    }

    /// Returns whether tasks see the node's paths of the default, not those of the setting.
    pub(crate) fn has_default_paths(&self) -> bool {
        self.config.chroot_env.is_empty()
    }

    /// Returns the start request of a task with records; `None`: it is unreadable.
    pub(crate) fn kept_request(&self, id: &TaskId) -> Option<StartRequest> {
        self.processes.kept_request(id)
    }

    /// Returns the path in a task of a file of the node; `None`: tasks do not see it.
    pub(crate) fn path_inside(&self, file: &Path) -> Option<PathBuf> {
        let seen = self.config.host_paths().into_iter();
        let mut inside = seen.filter_map(|(target, source)| {
            let source = source.canonicalize().ok()?;
            Some(target.join(file.strip_prefix(source).ok()?))
        });
        inside.next()
    }

    fn request(
        &self,
        config: TaskConfig,
        options: Options,
        defaults: &IsolationDefaults,
    ) -> Result<StartRequest, StartError> {
        let logs = config
            .dirs
            .as_ref()
            .and_then(|dirs| Logs::of(&config, dirs));
        options.check()?;
        let Some(dirs) = &config.dirs else {
            let text = "isolated tasks need a node with a disk";
            return Err(StartError::Config(text.to_owned()));
        };
        let name = if config.user.is_empty() {
            defaults.user
        } else {
            &config.user
        };
        let user = user::find(name)?;
        let Some(user) = user else {
            return Err(StartError::Config("the task has no user".to_owned()));
        };
        let capabilities = capabilities::decide(
            defaults.capabilities,
            &self.config.allow_caps,
            &options.cap_add,
            &options.cap_drop,
            user.uid == 0,
        );
        let capabilities = capabilities.map_err(StartError::Config)?;
        let pid_mode = &self.config.default_pid_mode;
        let ipc_mode = &self.config.default_ipc_mode;
        let isolation = Isolation {
            root: dirs.root.clone(),
            shared: dirs.shared.clone(),
            logs: dirs.logs.clone(),
            host: defaults.host.clone(),
            devices: defaults.devices.clone(),
            volumes: config.mounts.iter().map(volume).collect::<Result<_, _>>()?,
            own_pids: is_private("pid_mode", &options.pid_mode, pid_mode)?,
            own_ipc: is_private("ipc_mode", &options.ipc_mode, ipc_mode)?,
            groups: user.groups()?,
            capabilities: capabilities.held,
            bounding_capabilities: capabilities.bounding,
            seccomp: self.config.seccomp,
            needs_limits: !self.config.without_limits,
        };
        user.own(&dirs.secrets)?;
        let mut env = BTreeMap::from([("PATH".to_owned(), PATH.to_owned())]);
        env.extend(user.variables());
        env.extend(config.env);
        Ok(StartRequest {
            version: VERSION,
            task_id: config.id.to_string(),
            boot_id: self.processes.boot_id.clone(),
            command: options.command.trim().into(),
            args: options.args,
            env,
            work_dir: options.work_dir.unwrap_or_else(|| PathBuf::from("/")),
            user: Some(User {
                uid: user.uid,
                gid: user.gid,
            }),
            cgroup_slice: self.processes.slice.clone(),
            cgroup_name: self
                .processes
                .cgroup_in_slice(&config.id, &config.resources),
            limits: Limits::new(&config.resources),
            oom_score_adj: options.oom_score_adj,
            logs,
            network: config.network,
            isolation: Some(isolation),
        })
    }
}

/// Returns the mount of a volume. A destination without a leading `/` is below the task's root.
fn volume(mount: &TaskMount) -> Result<Volume, StartError> {
    let destination = Path::new("/").join(&mount.destination);
    let text = destination.to_string_lossy();
    let problem = wrong_path(&text).or((text == "/").then_some("want a directory below /"));
    if let Some(problem) = problem {
        let text = format!(
            "volume_mount: destination {:?}: {problem}",
            mount.destination
        );
        return Err(StartError::Config(text));
    }
    Ok(Volume {
        source: PathBuf::from(&mount.source),
        destination,
        read_only: mount.read_only,
    })
}

impl Driver for Exec {
    fn name(&self) -> &'static str {
        NAME
    }

    fn fingerprint(&self) -> Fingerprint {
        let lack = if self.config.enabled {
            self.lacks()
        } else {
            Some("disabled".to_owned())
        };
        let detected = lack.is_none();
        let limits_memory = self
            .processes
            .slice
            .as_deref()
            .is_some_and(cgroup::limits_memory);
        let limits_memory = u8::from(limits_memory).to_string();
        let attributes = detected.then(|| {
            [
                (format!("driver.{NAME}"), "1".to_owned()),
                (format!("driver.{NAME}.limits_memory"), limits_memory),
            ]
        });
        let description = match lack {
            Some(lack) => lack,
            None => match self.lacks_limits() {
                Some(lack) => format!("Healthy, but tasks have no limits: {lack}"),
                None => "Healthy".to_owned(),
            },
        };
        Fingerprint {
            detected,
            healthy: detected,
            description,
            attributes: attributes.into_iter().flatten().collect(),
        }
    }

    fn inside(&self, _: &TaskDirs) -> TaskDirs {
        TaskDirs::in_image()
    }

    fn mount_support(&self) -> MountSupport {
        MountSupport::Private
    }

    fn network_support(&self) -> NetworkSupport {
        NetworkSupport::Joins
    }

    fn start(&self, config: TaskConfig) -> BoxFuture<'_, Result<(), StartError>> {
        Box::pin(self.start_task(config))
    }

    fn stop<'a>(
        &'a self,
        id: &'a TaskId,
        signal: &'a str,
        grace: Duration,
    ) -> BoxFuture<'a, Result<(), DriverError>> {
        self.processes.stop(id, signal, grace)
    }

    fn exec<'a>(
        &'a self,
        id: &'a TaskId,
        command: ExecCommand,
        io: ExecIo,
    ) -> BoxFuture<'a, Result<i32, DriverError>> {
        self.processes.exec(id, command, io)
    }

    operations_of!(processes);
}
