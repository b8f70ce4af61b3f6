//! Options of a task's `config` block.
//!
//! Source: the public documentation of Nomad's driver.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Deserializer};
use task_drivers::{blocks, config};

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Options {
    pub(crate) image: String,
    pub(crate) command: String,
    pub(crate) args: Vec<String>,
    #[serde(deserialize_with = "blocks::list")]
    pub(crate) entrypoint: Vec<String>,
    pub(crate) work_dir: String,
    /// Labels of the group's ports to publish.
    pub(crate) ports: Vec<String>,
    /// Old form of `ports`: label → port inside the container.
    #[serde(deserialize_with = "blocks::texts")]
    pub(crate) port_map: BTreeMap<String, String>,
    #[serde(deserialize_with = "blocks::one")]
    pub(crate) auth: Option<Auth>,
    pub(crate) auth_soft_fail: bool,
    pub(crate) force_pull: bool,
    #[serde(deserialize_with = "optional_duration")]
    pub(crate) image_pull_timeout: Option<Duration>,
    pub(crate) volumes: Vec<String>,
    pub(crate) volume_driver: String,
    #[serde(deserialize_with = "blocks::many")]
    pub(crate) mount: Vec<Mount>,
    #[serde(deserialize_with = "blocks::many")]
    pub(crate) mounts: Vec<Mount>,
    #[serde(deserialize_with = "blocks::texts")]
    pub(crate) labels: BTreeMap<String, String>,
    /// Patterns of facts, besides those of the node's settings.
    pub(crate) extra_labels: Vec<String>,
    pub(crate) network_mode: String,
    pub(crate) network_aliases: Vec<String>,
    pub(crate) ipv4_address: String,
    pub(crate) ipv6_address: String,
    pub(crate) mac_address: String,
    pub(crate) hostname: String,
    pub(crate) extra_hosts: Vec<String>,
    pub(crate) dns_servers: Vec<String>,
    pub(crate) dns_search_domains: Vec<String>,
    pub(crate) dns_options: Vec<String>,
    pub(crate) privileged: bool,
    pub(crate) cap_add: Vec<String>,
    pub(crate) cap_drop: Vec<String>,
    pub(crate) security_opt: Vec<String>,
    #[serde(deserialize_with = "blocks::many")]
    pub(crate) devices: Vec<Device>,
    #[serde(deserialize_with = "blocks::texts")]
    pub(crate) sysctl: BTreeMap<String, String>,
    #[serde(deserialize_with = "blocks::texts")]
    pub(crate) ulimit: BTreeMap<String, String>,
    pub(crate) shm_size: i64,
    pub(crate) init: bool,
    pub(crate) runtime: String,
    pub(crate) userns_mode: String,
    pub(crate) uts_mode: String,
    pub(crate) pid_mode: String,
    pub(crate) ipc_mode: String,
    pub(crate) cgroupns: String,
    pub(crate) cpu_hard_limit: bool,
    pub(crate) cpu_cfs_period: Option<i64>,
    pub(crate) cpuset_cpus: String,
    /// Old form of the task's `memory_max`, in MiB.
    pub(crate) memory_hard_limit: u32,
    pub(crate) pids_limit: i64,
    pub(crate) oom_score_adj: i64,
    #[serde(deserialize_with = "blocks::one")]
    pub(crate) logging: Option<Logging>,
    pub(crate) tty: bool,
    pub(crate) interactive: bool,
    pub(crate) readonly_rootfs: bool,
    #[serde(deserialize_with = "blocks::texts")]
    pub(crate) storage_opt: BTreeMap<String, String>,
    pub(crate) group_add: Vec<String>,
    #[serde(deserialize_with = "blocks::one")]
    pub(crate) healthchecks: Option<Healthchecks>,
    /// Options that podman alone has.
    #[serde(skip)]
    pub(crate) podman: PodmanOptions,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Auth {
    pub(crate) username: String,
    pub(crate) password: String,
    pub(crate) email: String,
    pub(crate) server_address: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Mount {
    /// `bind`, `volume` or `tmpfs`; empty: `volume`.
    #[serde(rename = "type")]
    pub(crate) kind: String,
    pub(crate) source: String,
    pub(crate) target: String,
    pub(crate) readonly: bool,
    #[serde(deserialize_with = "blocks::one")]
    pub(crate) bind_options: Option<BindOptions>,
    #[serde(deserialize_with = "blocks::one")]
    pub(crate) tmpfs_options: Option<TmpfsOptions>,
    #[serde(deserialize_with = "blocks::one")]
    pub(crate) volume_options: Option<VolumeOptions>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct BindOptions {
    pub(crate) propagation: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct TmpfsOptions {
    /// In bytes; 0: the engine's default.
    pub(crate) size: i64,
    pub(crate) mode: i64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct VolumeOptions {
    pub(crate) no_copy: bool,
    #[serde(deserialize_with = "blocks::texts")]
    pub(crate) labels: BTreeMap<String, String>,
    #[serde(deserialize_with = "blocks::one")]
    pub(crate) driver_config: Option<DriverConfig>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct DriverConfig {
    pub(crate) name: String,
    #[serde(deserialize_with = "blocks::texts")]
    pub(crate) options: BTreeMap<String, String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Device {
    pub(crate) host_path: String,
    pub(crate) container_path: String,
    pub(crate) cgroup_permissions: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Logging {
    #[serde(rename = "type")]
    pub(crate) kind: String,
    /// Old form of `type`.
    pub(crate) driver: String,
    #[serde(deserialize_with = "blocks::texts")]
    pub(crate) config: BTreeMap<String, String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Healthchecks {
    pub(crate) disable: bool,
}

/// Options that podman alone has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PodmanOptions {
    /// In bytes.
    pub(crate) memory_reservation: Option<i64>,
    /// Memory and swap, in bytes; -1: unlimited.
    pub(crate) memory_swap: Option<i64>,
    /// 0 to 100.
    pub(crate) memory_swappiness: Option<i64>,
    /// Path in the container → mount options.
    pub(crate) tmpfs: BTreeMap<String, String>,
}

fn optional_duration<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Duration>, D::Error> {
    config::duration(deserializer).map(Some)
}
