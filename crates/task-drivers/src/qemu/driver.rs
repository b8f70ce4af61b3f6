//! Operations of the driver: what differs from isolated processes of the node's programs.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use model::MemoryMax;
use tokio::sync::mpsc;
use tokio::time::timeout;
use tracing::{debug, warn};

use super::command_line::{Machine, command_line, has_monitor, uses_kvm};
use super::options::{EMULATOR, Options};
use super::settings::QemuConfig;
use super::{args, image, monitor};
use crate::config;
use crate::dirs::TaskDirs;
use crate::driver::{
    BoxFuture, Driver, DriverError, Fingerprint, NetworkSupport, StartError, TaskConfig, TaskId,
};
use crate::exec::{self, Exec, ExecConfig, IsolationDefaults};
use crate::program::{self, Versions};
use crate::raw_exec::RawExec;

/// The driver's name in jobs.
const NAME: &str = "qemu";
/// The user of tasks that name none: the owner of images that an artifact block has fetched.
const USER: &str = "root";
/// An emulator needs no rights but that of forwarding low ports.
const CAPABILITIES: [&str; 1] = ["net_bind_service"];
const KVM: &str = "/dev/kvm";
/// Paths of the node in `/etc` that emulators need; the others are of no use to a machine.
const ETC: [&str; 5] = [
    "/etc/alternatives",
    "/etc/group",
    "/etc/ld.so.cache",
    "/etc/passwd",
    "/etc/qemu",
];

/// Runs virtual machines. Dropping it leaves them running.
#[derive(Debug)]
pub struct Qemu {
    config: QemuConfig,
    processes: Exec,
    /// Directories of emulators.
    search: OsString,
    versions: Versions,
    /// The version of the emulator, or what the node lacks, at the last probe.
    version: Mutex<Result<String, String>>,
}

impl Qemu {
    /// The records of its tasks are in `state_dir`. `exec`: the settings of their isolation. `search`: the
    /// directories of emulators, as in the variable PATH.
    pub fn new(
        config: QemuConfig,
        exec: ExecConfig,
        state_dir: PathBuf,
        raw_exec: &RawExec,
        search: OsString,
    ) -> Self {
        Self {
            config,
            processes: Exec::new(exec, state_dir, raw_exec),
            search,
            versions: Versions::default(),
            version: Mutex::new(Err("not probed yet".to_owned())),
        }
    }

    /// Asks the default emulator for its version, and keeps the answer.
    async fn probe(&self) {
        if !self.config.enabled {
            return;
        }
        let found = self.look_up().await;
        *self.version.lock().unwrap_or_else(PoisonError::into_inner) = found;
    }

    async fn look_up(&self) -> Result<String, String> {
        let (found, _) = self.emulator(EMULATOR)?;
        let said = self.versions.ask(&found, "--version").await?;
        let version = version(&said);
        version.ok_or_else(|| format!("{} --version names no version: {said:?}", found.display()))
    }

    /// Returns the path of an emulator, and its path in tasks.
    fn emulator(&self, name: &str) -> Result<(PathBuf, PathBuf), String> {
        let found = program::find(name, &self.search);
        let found = found.ok_or_else(|| format!("no program {name} in the agent's PATH"))?;
        let file = found
            .canonicalize()
            .map_err(|error| format!("{}: {error}", found.display()))?;
        let inside = self.processes.path_inside(&file).ok_or_else(|| {
            format!(
                "tasks do not see {}: add its directory to drivers.exec.chroot_env",
                file.display()
            )
        })?;
        Ok((found, inside))
    }

    /// Returns the version.
    ///
    /// # Errors
    /// What the node lacks for the driver.
    fn find(&self) -> Result<String, String> {
        if !self.config.enabled {
            return Err("disabled".to_owned());
        }
        let version = self.version.lock().unwrap_or_else(PoisonError::into_inner);
        let version = version.clone()?;
        self.processes.lacks().map_or(Ok(version), Err)
    }

    async fn start_task(&self, mut config: TaskConfig) -> Result<(), StartError> {
        self.find().map_err(|lack| StartError::Failed {
            message: format!("driver qemu does not work on this node: {lack}"),
            recoverable: false,
        })?;
        let options: Options = config::decode(NAME, std::mem::take(&mut config.config))?;
        let process = self.process(&mut config, &options);
        let process = process.map_err(StartError::Config)?;
        let defaults = self.isolation_defaults(&options);
        self.processes
            .start_isolated(config, process, &defaults)
            .await
    }

    /// Returns the emulator's process, and gives the task what that needs.
    fn process(&self, task: &mut TaskConfig, options: &Options) -> Result<exec::Options, String> {
        options.check()?;
        args::check(&options.args, &self.config.args_allowlist)?;
        let dirs = task.dirs.as_ref();
        let dirs = dirs.ok_or("driver qemu needs a node with a disk")?;
        let (_, emulator) = self.emulator(&options.emulator)?;
        if uses_kvm(options) && !Path::new(KVM).exists() {
            let text = "accelerator: this node has no /dev/kvm: use tcg, or a node with it";
            return Err(text.to_owned());
        }
        let image = image::find(&options.image_path, dirs, &self.config.image_paths)?;
        task.mounts.extend(image.mount);
        let machine = Machine {
            name: &format!("{}-{}", task.id.task, task.id.alloc_id),
            image: &image.inside,
            memory_mib: task.resources.memory_mib,
            cores: task.resources.cores.len(),
            ports: &task.ports,
            has_network: task.network.is_some(),
        };
        let args = command_line(options, machine)?;
        // The emulator needs memory beside the machine's own, which is what the task asks for.
        task.resources.memory_max = MemoryMax::Unlimited;
        Ok(exec::Options {
            command: emulator.display().to_string(),
            args,
            ..exec::Options::default()
        })
    }

    fn isolation_defaults(&self, options: &Options) -> IsolationDefaults {
        let own = self.processes.isolation_defaults();
        let kvm = uses_kvm(options).then(|| KVM.into());
        IsolationDefaults {
            user: USER,
            capabilities: &CAPABILITIES,
            host: if self.processes.has_default_paths() {
                without_etc(own.host)
            } else {
                own.host
            },
            devices: kvm.into_iter().collect(),
        }
    }

    async fn stop_task(
        &self,
        id: &TaskId,
        signal: &str,
        grace: Duration,
    ) -> Result<(), DriverError> {
        if let Some(directory) = self.monitor(id) {
            match monitor::shut_down(&directory).await {
                Ok(()) => {
                    debug!(%id, ?grace, "a machine shuts down");
                    if self.ends_within(id, grace).await {
                        return Ok(());
                    }
                    return self.processes.stop(id, "SIGKILL", Duration::ZERO).await;
                }
                Err(error) => warn!(%id, %error, "a machine cannot be asked to shut down"),
            }
        }
        self.processes.stop(id, signal, grace).await
    }

    /// Returns the directory of the machine's monitor; `None`: the task asked for none.
    fn monitor(&self, id: &TaskId) -> Option<PathBuf> {
        let request = self.processes.kept_request(id)?;
        has_monitor(&request.args).then_some(())?;
        Some(request.isolation?.root.join("tmp"))
    }

    async fn ends_within(&self, id: &TaskId, limit: Duration) -> bool {
        // Messages go to the task's own wait.
        let (messages, _dropped) = mpsc::channel(1);
        timeout(limit, self.processes.wait(id, &messages))
            .await
            .is_ok()
    }
}

/// Reads the answer of an emulator, as in `QEMU emulator version 7.2.22 (Debian …)`.
fn version(said: &str) -> Option<String> {
    let (_, rest) = said.split_once(" version ")?;
    let version = rest.split_whitespace().next()?;
    version
        .starts_with(|c: char| c.is_ascii_digit())
        .then(|| version.to_owned())
}

/// Replaces the node's `/etc`, with its secrets, by what emulators need of it.
fn without_etc(mut host: BTreeMap<PathBuf, PathBuf>) -> BTreeMap<PathBuf, PathBuf> {
    if host.remove(Path::new("/etc")).is_some() {
        host.extend(ETC.map(|path| (path.into(), path.into())));
    }
    host
}

impl Driver for Qemu {
    fn name(&self) -> &'static str {
        NAME
    }

    fn fingerprint(&self) -> Fingerprint {
        match self.find() {
            Ok(version) => Fingerprint {
                detected: true,
                healthy: true,
                description: "Healthy".to_owned(),
                attributes: BTreeMap::from([
                    (format!("driver.{NAME}"), "1".to_owned()),
                    (format!("driver.{NAME}.version"), version),
                ]),
            },
            Err(description) => Fingerprint {
                description,
                ..Fingerprint::default()
            },
        }
    }

    fn refresh(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.probe())
    }

    fn inside(&self, dirs: &TaskDirs) -> TaskDirs {
        self.processes.inside(dirs)
    }

    fn network_support(&self) -> NetworkSupport {
        self.processes.network_support()
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
        Box::pin(self.stop_task(id, signal, grace))
    }

    operations_of!(processes);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_and_other_answers_are_none() {
        let said = "QEMU emulator version 7.2.22 (Debian 1:7.2+dfsg-7+deb12u18)\nCopyright (c) …\n";
        assert_eq!(version(said).as_deref(), Some("7.2.22"));
        for said in ["", "QEMU emulator version", "a version of mine"] {
            assert_eq!(version(said), None, "{said}");
        }
    }

    #[test]
    fn a_machine_does_not_see_the_nodes_secrets() {
        let host = ["/usr", "/etc"].map(|path| (PathBuf::from(path), PathBuf::from(path)));
        let seen = without_etc(host.clone().into());
        assert!(!seen.contains_key(Path::new("/etc")));
        assert!(seen.contains_key(Path::new("/etc/ld.so.cache")));
        assert!(seen.contains_key(Path::new("/usr")));
        let without: BTreeMap<_, _> = host.into_iter().take(1).collect();
        assert_eq!(without_etc(without.clone()), without);
    }
}
