//! Operations of the driver: what differs from isolated processes of the node's programs.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use super::options::Options;
use super::program::{Lookup, Machine};
use super::settings::JavaConfig;
use crate::command::{ExecCommand, ExecIo};
use crate::config;
use crate::dirs::TaskDirs;
use crate::driver::{
    BoxFuture, Driver, DriverError, Fingerprint, MountSupport, NetworkSupport, StartError,
    TaskConfig, TaskId,
};
use crate::exec::{Exec, ExecConfig};
use crate::raw_exec::RawExec;

/// The driver's name in jobs.
const NAME: &str = "java";

/// Runs Java programs as isolated processes. Dropping it leaves them running.
#[derive(Debug)]
pub struct Java {
    config: JavaConfig,
    processes: Exec,
    machine: Lookup,
}

impl Java {
    /// The records of its tasks are in `state_dir`. `exec`: the settings of their isolation. `search`: the
    /// directories of the program `java`, as in the variable PATH.
    pub fn new(
        config: JavaConfig,
        exec: ExecConfig,
        state_dir: PathBuf,
        raw_exec: &RawExec,
        search: OsString,
    ) -> Self {
        Self {
            config,
            processes: Exec::new(exec, state_dir, raw_exec),
            machine: Lookup::new(search),
        }
    }

    /// Returns the machine.
    ///
    /// # Errors
    /// What the node lacks for the driver.
    fn find(&self) -> Result<Machine, String> {
        if !self.config.enabled {
            return Err("disabled".to_owned());
        }
        let machine = self.machine.last()?;
        self.processes.lacks().map_or(Ok(machine), Err)
    }

    async fn start_task(&self, mut config: TaskConfig) -> Result<(), StartError> {
        let machine = self.find().map_err(|lack| StartError::Failed {
            message: format!("driver java does not work on this node: {lack}"),
            recoverable: false,
        })?;
        let options: Options = config::decode(NAME, std::mem::take(&mut config.config))?;
        let process = options.process(&machine.inside)?;
        let defaults = self.processes.isolation_defaults();
        self.processes
            .start_isolated(config, process, &defaults)
            .await
    }
}

impl Driver for Java {
    fn name(&self) -> &'static str {
        NAME
    }

    fn fingerprint(&self) -> Fingerprint {
        let machine = match self.find() {
            Ok(machine) => machine,
            Err(description) => {
                return Fingerprint {
                    description,
                    ..Fingerprint::default()
                };
            }
        };
        let version = machine.version;
        let attributes = [
            ("", "1".to_owned()),
            (".version", version.version),
            (".runtime", version.runtime),
            (".vm", version.vm),
        ];
        let attributes = attributes
            .into_iter()
            .filter(|(_, value)| !value.is_empty())
            .map(|(name, value)| (format!("driver.{NAME}{name}"), value));
        let description = match self.processes.lacks_limits() {
            Some(lack) => format!("Healthy, but tasks have no limits: {lack}"),
            None => "Healthy".to_owned(),
        };
        Fingerprint {
            detected: true,
            healthy: true,
            description,
            attributes: attributes.collect(),
        }
    }

    fn refresh(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            if self.config.enabled {
                self.machine.refresh(&self.processes).await;
            }
        })
    }

    fn inside(&self, dirs: &TaskDirs) -> TaskDirs {
        self.processes.inside(dirs)
    }

    fn mount_support(&self) -> MountSupport {
        self.processes.mount_support()
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
