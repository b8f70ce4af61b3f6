//! Options of podman tasks, and the options of docker's that they become. No I/O.
//!
//! Source: the public documentation of Nomad's driver plugin for podman.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Deserializer};
use task_drivers::{TaskId, blocks, config};

use crate::{names, options};

/// Prefix of image names that are looked up in registries, which is the default.
const REGISTRY: &str = "docker://";
/// Prefixes of images in files.
const FILES: [&str; 5] = [
    "docker-archive:",
    "oci-archive:",
    "oci:",
    "dir:",
    "containers-storage:",
];
/// The log driver by which the agent collects output; the node's own does that, too.
const COLLECTED: &str = "nomad";
/// The one socket of a node.
const SOCKET: &str = "default";

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Options {
    image: String,
    #[serde(deserialize_with = "optional_duration")]
    image_pull_timeout: Option<Duration>,
    #[serde(deserialize_with = "blocks::one")]
    auth: Option<Auth>,
    auth_soft_fail: bool,
    force_pull: bool,
    command: String,
    args: Vec<String>,
    #[serde(deserialize_with = "blocks::list")]
    entrypoint: Vec<String>,
    working_dir: String,
    hostname: String,
    ports: Vec<String>,
    #[serde(deserialize_with = "blocks::texts")]
    port_map: BTreeMap<String, String>,
    network_mode: String,
    extra_hosts: Vec<String>,
    volumes: Vec<String>,
    /// As in `/run` or `/run:size=64m`.
    tmpfs: Vec<String>,
    /// As in `/dev/fuse:/dev/fuse:rwm`.
    devices: Vec<String>,
    init: bool,
    tty: bool,
    #[serde(deserialize_with = "blocks::texts")]
    labels: BTreeMap<String, String>,
    extra_labels: Vec<String>,
    #[serde(deserialize_with = "blocks::one")]
    logging: Option<Logging>,
    memory_reservation: String,
    memory_swap: String,
    memory_swappiness: Option<i64>,
    cpu_hard_limit: bool,
    cpu_cfs_period: Option<i64>,
    pids_limit: i64,
    shm_size: String,
    #[serde(deserialize_with = "blocks::texts")]
    sysctl: BTreeMap<String, String>,
    #[serde(deserialize_with = "blocks::texts")]
    ulimit: BTreeMap<String, String>,
    readonly_rootfs: bool,
    privileged: bool,
    cap_add: Vec<String>,
    cap_drop: Vec<String>,
    security_opt: Vec<String>,
    apparmor_profile: String,
    selinux_opts: Vec<String>,
    userns: String,
    socket: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Auth {
    username: String,
    password: String,
    email: String,
    server_address: String,
    /// Without effect: podman's registries.conf says which registries are not verified.
    tls_verify: Option<bool>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Logging {
    driver: String,
    #[serde(deserialize_with = "blocks::texts")]
    options: BTreeMap<String, String>,
}

impl Options {
    /// Returns the same in docker's options. `id`: the task that has them.
    ///
    /// # Errors
    /// The first wrong option, and how to correct it.
    pub(crate) fn translate(self, id: &TaskId) -> Result<options::Options, String> {
        if !matches!(self.socket.as_str(), "" | SOCKET) {
            return Err(format!(
                "option socket: this node has one socket of podman, \"default\", not {:?}: leave it out, and \
                 choose the node by a constraint",
                self.socket
            ));
        }
        let mut security_opt = self.security_opt;
        if !self.apparmor_profile.is_empty() {
            security_opt.push(format!("apparmor={}", self.apparmor_profile));
        }
        security_opt.extend(self.selinux_opts.iter().map(|it| format!("label={it}")));
        let devices: Result<_, _> = self.devices.iter().map(|it| device(it)).collect();
        let swappiness = self.memory_swappiness;
        if swappiness.is_some_and(|it| !(0..=100).contains(&it)) {
            return Err("option memory_swappiness: want 0 to 100".to_owned());
        }
        Ok(options::Options {
            image: image(&self.image)?,
            image_pull_timeout: self.image_pull_timeout,
            auth: self.auth.map(|auth| options::Auth {
                username: auth.username,
                password: auth.password,
                email: auth.email,
                server_address: auth.server_address,
            }),
            auth_soft_fail: self.auth_soft_fail,
            force_pull: self.force_pull,
            command: self.command,
            args: self.args,
            entrypoint: self.entrypoint,
            work_dir: self.working_dir,
            hostname: self.hostname,
            ports: self.ports,
            port_map: self.port_map,
            network_mode: network_mode(self.network_mode, id)?,
            extra_hosts: self.extra_hosts,
            volumes: self.volumes,
            devices: devices?,
            init: self.init,
            tty: self.tty,
            labels: self.labels,
            extra_labels: self.extra_labels,
            logging: self.logging.and_then(logging),
            cpu_hard_limit: self.cpu_hard_limit,
            cpu_cfs_period: self.cpu_cfs_period,
            pids_limit: self.pids_limit,
            shm_size: bytes("shm_size", &self.shm_size)?.unwrap_or(0),
            sysctl: self.sysctl,
            ulimit: self.ulimit,
            readonly_rootfs: self.readonly_rootfs,
            privileged: self.privileged,
            cap_add: self.cap_add,
            cap_drop: self.cap_drop,
            security_opt,
            userns_mode: self.userns,
            podman: options::PodmanOptions {
                memory_reservation: bytes("memory_reservation", &self.memory_reservation)?,
                memory_swap: match self.memory_swap.as_str() {
                    "-1" => Some(-1),
                    text => bytes("memory_swap", text)?,
                },
                memory_swappiness: swappiness,
                tmpfs: tmpfs(&self.tmpfs)?,
            },
            ..options::Options::default()
        })
    }
}

/// Returns the name without the prefix of registries.
fn image(name: &str) -> Result<String, String> {
    if let Some(prefix) = FILES.iter().find(|prefix| name.starts_with(**prefix)) {
        return Err(format!(
            "option image: {name:?} is a file, not the name of an image: load it on the node with podman load, \
             and write the image's name instead of {prefix}…"
        ));
    }
    Ok(name.strip_prefix(REGISTRY).unwrap_or(name).to_owned())
}

/// Returns the mode, with another task of the allocation as the container that it is.
fn network_mode(mode: String, id: &TaskId) -> Result<String, String> {
    if let Some(task) = mode.strip_prefix("task:") {
        let other = TaskId {
            task: task.to_owned(),
            ..id.clone()
        };
        return Ok(format!("container:{}", names::of_task(&other)));
    }
    if mode.starts_with("pod:") {
        return Err(format!(
            "option network_mode: {mode:?} is a pod of podman, which the agent does not make: share the network \
             of another task with task:<name>, or of the group with a network block of mode bridge"
        ));
    }
    Ok(mode)
}

fn logging(logging: Logging) -> Option<options::Logging> {
    if matches!(logging.driver.as_str(), "" | COLLECTED) {
        return None;
    }
    Some(options::Logging {
        kind: logging.driver,
        driver: String::new(),
        config: logging.options,
    })
}

/// Reads `path on the node[:path in the container[:permissions]]`.
fn device(text: &str) -> Result<options::Device, String> {
    let mut parts = text.split(':');
    let mut next = || parts.next().unwrap_or_default().to_owned();
    let device = options::Device {
        host_path: next(),
        container_path: next(),
        cgroup_permissions: next(),
    };
    if device.host_path.is_empty() || parts.next().is_some() {
        return Err(format!(
            "option devices: {text:?} is not of the form /dev/host[:/dev/container[:rwm]]"
        ));
    }
    Ok(device)
}

/// Reads `path[:options]`.
fn tmpfs(mounts: &[String]) -> Result<BTreeMap<String, String>, String> {
    let mut result = BTreeMap::new();
    for mount in mounts {
        let (path, options) = mount.split_once(':').unwrap_or((mount, ""));
        if !path.starts_with('/') {
            return Err(format!(
                "option tmpfs: {mount:?} has no absolute path: write /path or /path:size=64m"
            ));
        }
        result.insert(path.to_owned(), options.to_owned());
    }
    Ok(result)
}

/// Reads a size with a unit: b, k, m or g; without one in bytes.
fn bytes(option: &str, text: &str) -> Result<Option<i64>, String> {
    if text.is_empty() {
        return Ok(None);
    }
    let (number, factor) = match text.to_ascii_lowercase().as_bytes() {
        [.., b'b'] => (&text[..text.len() - 1], 1),
        [.., b'k'] => (&text[..text.len() - 1], 1 << 10),
        [.., b'm'] => (&text[..text.len() - 1], 1 << 20),
        [.., b'g'] => (&text[..text.len() - 1], 1 << 30),
        _ => (text, 1),
    };
    let number: Option<i64> = number.parse().ok().filter(|number| *number >= 0);
    let size = number.and_then(|number| number.checked_mul(factor));
    size.map(Some).ok_or_else(|| {
        format!("option {option}: {text:?} is no size, as in 100m: units are b, k, m and g")
    })
}

fn optional_duration<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Duration>, D::Error> {
    config::duration(deserializer).map(Some)
}
