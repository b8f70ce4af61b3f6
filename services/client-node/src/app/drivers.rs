//! Task drivers and downloads of a node, as configured.

use std::path::Path;
use std::sync::Arc;

use artifact_fetch::{Artifacts, HelperCommand};
use docker_driver::{Docker, EngineKind};
use task_drivers::{
    Driver, Exec, Java, MockDriver, Qemu, RawExec, RawExecSettings, SupervisorCommand,
};
use task_runner::Drivers;

use crate::config::{ArtifactConfig, Config, DriversConfig, EngineConfig};
use crate::error::Error;
use crate::{ARTIFACT_SUBCOMMAND, SUPERVISOR_SUBCOMMAND};

/// Facts about the node for its drivers.
pub(super) struct NodeInfo<'a> {
    /// The agent's directory; `None`: only simulated tasks.
    pub(super) state_dir: Option<&'a Path>,
    pub(super) node_id: String,
    pub(super) node_name: String,
}

/// Returns the drivers by name.
/// `own_subcommand`: the subcommand of the agent's program that runs a supervisor.
pub(super) fn drivers(
    config: &DriversConfig,
    node: &NodeInfo<'_>,
    own_subcommand: &str,
) -> Drivers {
    let mut drivers = Drivers::new();
    if config.mock_driver || node.state_dir.is_none() {
        let mock = MockDriver::default();
        drivers.insert(mock.name(), Arc::new(mock));
    }
    if let Some(state_dir) = node.state_dir {
        let supervisor = supervisor(config, own_subcommand);
        let mut settings = RawExecSettings::new(supervisor, state_dir.join("tasks"));
        settings.enabled = config.raw_exec;
        let parent = Some(config.cgroup_parent.clone());
        settings.cgroup_parent = parent.filter(|parent| !parent.is_empty());
        let raw_exec = RawExec::new(settings);
        let search = std::env::var_os("PATH").unwrap_or_default();
        let (exec, java, qemu) = (&config.exec, &config.java, &config.qemu);
        let java = Java::new(
            java.clone(),
            exec.clone(),
            state_dir.join("java"),
            &raw_exec,
            search.clone(),
        );
        let qemu = Qemu::new(
            qemu.clone(),
            exec.clone(),
            state_dir.join("qemu"),
            &raw_exec,
            search,
        );
        let exec = Exec::new(exec.clone(), state_dir.join("exec"), &raw_exec);
        let engine = |engine_kind, config: &EngineConfig, directory| {
            Docker::new(docker_driver::Settings {
                engine_kind,
                config: config.clone(),
                node_name: node.node_name.clone(),
                ..docker_driver::Settings::new(state_dir.join(directory), node.node_id.clone())
            })
        };
        let docker = engine(EngineKind::Docker, &config.docker, "containers");
        let podman = engine(EngineKind::Podman, &config.podman, "podman");
        let all: [Arc<dyn Driver>; 6] = [
            Arc::new(raw_exec),
            Arc::new(exec),
            Arc::new(java),
            Arc::new(qemu),
            Arc::new(docker),
            Arc::new(podman),
        ];
        drivers.extend(all.map(|driver| (driver.name(), driver)));
    }
    drivers
}

fn supervisor(config: &DriversConfig, own_subcommand: &str) -> SupervisorCommand {
    match config.supervisor.as_slice() {
        [] => SupervisorCommand::own_program(own_subcommand),
        [program, args @ ..] => SupervisorCommand {
            program: program.into(),
            args: args.iter().map(Into::into).collect(),
        },
    }
}

/// Starts the node's plugins. None has the name of a driver in `built_in` that is turned on.
pub(super) async fn plugins(
    config: &Config,
    node: &NodeInfo<'_>,
    built_in: &Drivers,
) -> driver_plugin::Plugins {
    let (Some(plugin_dir), Some(state_dir)) = (config.plugin_dir.clone(), node.state_dir) else {
        return Default::default();
    };
    let drivers = &config.drivers;
    let is_off = |name: &str| match name {
        "docker" => !drivers.docker.enabled,
        "podman" => !drivers.podman.enabled,
        _ => false,
    };
    let built_in = built_in.keys().filter(|name| !is_off(name));
    driver_plugin::Plugins::start(driver_plugin::Settings {
        plugin_dir,
        plugins: config.plugins.clone(),
        state_dir: state_dir.join("plugins"),
        node_id: node.node_id.clone(),
        node_name: node.node_name.clone(),
        supervisor: supervisor(drivers, SUPERVISOR_SUBCOMMAND),
        built_in: built_in.map(|name| (*name).to_owned()).collect(),
        timing: Default::default(),
    })
    .await
}

/// Opens the node's downloads; `None` on a node without storage.
///
/// # Errors
/// The folder of the cache cannot be used.
pub(super) fn artifacts(
    config: &ArtifactConfig,
    alloc_dir: Option<&Path>,
    metrics: &artifact_fetch::Metrics,
) -> Result<Option<Arc<Artifacts>>, Error> {
    let Some(alloc_dir) = alloc_dir else {
        return Ok(None);
    };
    // Of the same file system as the allocations, and outside of the agent's own state.
    let folder = alloc_dir.with_file_name("artifacts");
    let helper = match config.helper.as_slice() {
        [] => HelperCommand::own_program(ARTIFACT_SUBCOMMAND),
        [program, args @ ..] => HelperCommand {
            program: program.into(),
            args: args.iter().map(Into::into).collect(),
        },
    };
    let opened = Artifacts::open(artifact_fetch::Settings {
        config: config.clone(),
        folder: folder.clone(),
        helper,
        metrics: metrics.clone(),
    });
    let opened = opened.map_err(|source| Error::File {
        path: folder,
        source,
    })?;
    Ok(Some(Arc::new(opened)))
}
