//! The engine's create request of a task, from its options and the node's settings. No I/O.
//!
//! In reading order: [`mounts`] of directories and volumes; [`network`] with published ports, or [`own_network`] of the allocation;
//! [`limits`] of cpu, memory and processes; [`rights`]: capabilities, devices and namespaces.
//!
//! Source: requests recorded from Nomad's public driver; docs/drivers/docker.md names the
//! differences.

mod limits;
mod mounts;
mod network;
mod own_network;
mod parts;
mod rights;
#[cfg(test)]
mod tests;

use bollard::models::{ContainerCreateBody, HealthConfig, HostConfig, HostConfigLogConfig};
use task_drivers::TaskConfig;

pub(crate) use self::mounts::host_paths;
pub(crate) use self::own_network::files;
use self::parts::{map, some, text};
use crate::container;
use crate::image::{self, Image};
use crate::options::Options;
use crate::settings::{EngineKind, Settings};

/// Returns the request, or the invalid option and how to correct it.
pub(crate) fn create(
    task: &TaskConfig,
    options: &Options,
    settings: &Settings,
) -> Result<ContainerCreateBody, String> {
    if options.image.is_empty() {
        return Err("option image is missing: write image = \"redis:7\"".to_owned());
    }
    Image::parse(&options.image)?;
    let ports = network::ports(task, options)?;
    let mut host = HostConfig {
        binds: Some(mounts::binds(task, options, settings)?),
        mounts: some(mounts::mounts(task, options, settings)?),
        volume_driver: text(&options.volume_driver),
        tmpfs: map(&options.podman.tmpfs),
        log_config: Some(log_config(options, settings)?),
        init: options.init.then_some(true),
        readonly_rootfs: options.readonly_rootfs.then_some(true),
        storage_opt: map(&options.storage_opt),
        network_mode: Some(network::mode(options)),
        port_bindings: (!ports.bindings.is_empty()).then_some(ports.bindings),
        extra_hosts: some(options.extra_hosts.clone()),
        dns: some(network::dns_servers(options)),
        dns_search: some(options.dns_search_domains.clone()),
        dns_options: some(options.dns_options.clone()),
        ..HostConfig::default()
    };
    limits::set(&mut host, task, options, settings)?;
    rights::set(&mut host, options, settings)?;
    let command = Some(&options.command).filter(|command| !command.is_empty());
    let health = options.healthchecks.as_ref();
    let mut body = ContainerCreateBody {
        image: Some(image::plain(&options.image).to_owned()),
        cmd: some(command.into_iter().chain(&options.args).cloned().collect()),
        entrypoint: some(options.entrypoint.clone()),
        working_dir: text(&options.work_dir),
        user: text(&task.user),
        hostname: text(&options.hostname),
        tty: options.tty.then_some(true),
        open_stdin: options.interactive.then_some(true),
        env: Some(env(task, options)),
        labels: Some(container::labels(task, options, settings)),
        exposed_ports: some(ports.exposed),
        healthcheck: health
            .filter(|health| health.disable)
            .map(|_| HealthConfig {
                test: Some(vec!["NONE".to_owned()]),
                ..HealthConfig::default()
            }),
        networking_config: network::endpoint(options),
        host_config: Some(host),
        ..ContainerCreateBody::default()
    };
    if let Some(network) = &task.network {
        own_network::join(&mut body, task, network);
    }
    Ok(body)
}

/// Returns `NAME=value`. With the old `port_map`, a port's variable is the port inside.
fn env(task: &TaskConfig, options: &Options) -> Vec<String> {
    let mut env = task.env.clone();
    for (label, port) in &options.port_map {
        if let Some(value) = env.get_mut(&format!("NOMAD_PORT_{label}")) {
            value.clone_from(port);
        }
    }
    env.into_iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect()
}

fn log_config(options: &Options, settings: &Settings) -> Result<HostConfigLogConfig, String> {
    let Some(logging) = &options.logging else {
        return Ok(HostConfigLogConfig {
            typ: text(&settings.config.log_driver),
            config: map(&settings.config.log_options),
        });
    };
    if !logging.kind.is_empty() && !logging.driver.is_empty() {
        return Err("option logging has both type and driver: write type alone".to_owned());
    }
    // Podman writes the log to this file of the host.
    if settings.engine_kind == EngineKind::Podman && logging.config.contains_key("path") {
        mounts::allow_volumes(settings, "option logging: \"path\"")?;
    }
    Ok(HostConfigLogConfig {
        typ: text(&logging.kind).or_else(|| text(&logging.driver)),
        config: map(&logging.config),
    })
}
