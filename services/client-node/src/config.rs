//! The one config struct, read once.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use model::NodePool;
use serde::{Deserialize, Serialize};
use service_kit::config::{duration, list};
use service_kit::settings::DEFAULT_SHUTDOWN_GRACE_PERIOD;
use service_kit::{ListenConfig, TelemetryConfig};

use crate::devices::DeviceConfig;
use crate::error::Error;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// The gateways to begin with, as in `http://10.0.0.1:4646`; they name the others.
    #[serde(with = "service_kit::address::list")]
    pub gateways: Vec<String>,
    /// Where everything of the node stands. Without one nothing is kept, and only `mock_driver`
    /// runs: a node that only pretends.
    pub data_dir: Option<PathBuf>,
    /// Where the node answers gateways (logs); they have to reach it.
    pub listen: ListenConfig,
    pub telemetry: TelemetryConfig,
    /// The node's name; by default the machine's.
    pub name: Option<String>,
    /// Jobs name the datacenters that they may run in.
    pub datacenter: String,
    /// What tasks read as `${node.region}`; there is one region in this version.
    pub region: String,
    /// Jobs run in one pool of nodes.
    pub node_pool: String,
    /// The operator's word for a kind of machine; empty: none.
    pub node_class: String,
    /// The operator's own words, read in jobs as `${meta.rack}`.
    pub meta: BTreeMap<String, String>,
    /// The address that tasks' ports are on; by default the one that the default route leaves from.
    pub host_ip: Option<IpAddr>,
    /// More addresses for ports, by the alias that a port's `host_network` names, as in
    /// `[host_networks.public]`; the alias `default` takes the place of `host_ip`.
    pub host_networks: BTreeMap<String, HostNetworkConfig>,
    /// Directories that jobs may ask for, by the name that a volume's `source` has, as in
    /// `[host_volumes.data]`.
    pub host_volumes: BTreeMap<String, HostVolumeConfig>,
    /// All cores together, in MHz; 0: as found.
    pub cpu_total_compute: u64,
    /// In MiB; 0: as found.
    pub memory_total_mb: u64,
    /// In MiB; 0: what the file system of `data_dir` has in all.
    pub disk_total_mb: u64,
    /// What of it is not for allocations.
    pub reserved: ReservedConfig,
    /// The cores that tasks may have for themselves, as in `0-3,7`; empty: all that the agent may
    /// run on, but for `reserved.cores`.
    pub reservable_cores: String,
    /// How many allocations the node takes, whatever their size; 0: as many as fit.
    pub node_max_allocs: u32,
    /// Devices that tasks may have for themselves: `[[devices]]` with `vendor`, `type`, `name`,
    /// `instances` (their ids), `unhealthy` (those not to be given out), `attributes` and `env`,
    /// the variable that tells a task which are its own.
    pub devices: Vec<DeviceConfig>,
    /// The range of ports that schedulers choose from, both ends inclusive. Source: Nomad's default.
    pub min_dynamic_port: u16,
    /// The last of them.
    pub max_dynamic_port: u16,
    pub drivers: DriversConfig,
    /// The longest time a task gets between its kill signal and its end, whatever its job says.
    /// Source: Nomad's default.
    #[serde(with = "duration")]
    pub max_kill_timeout: Duration,
    pub gc: GcConfig,
    /// How often the machine is looked at again for what it has.
    #[serde(with = "duration")]
    pub fingerprint_interval: Duration,
    /// Kill every task when the agent is told to end, as a power cut would; for development. By
    /// default tasks go on without the agent.
    pub stop_tasks_on_exit: bool,
    /// How long RPCs in hand may go on once it is told to end.
    #[serde(with = "duration")]
    pub shutdown_grace_period: Duration,
}

/// What of a machine is not for allocations.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ReservedConfig {
    /// In MHz, beside what `cores` come to.
    pub cpu: u64,
    /// Cores that no task gets for itself, as in `0-1`; what they come to is not for allocations.
    pub cores: String,
    /// In MiB.
    pub memory_mb: u64,
    /// In MiB.
    pub disk_mb: u64,
    /// Ports and ranges of them on any address, as in `22,8000-8010`.
    pub reserved_ports: String,
}

/// Addresses of the machine: by a range or by an interface, one of the two.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HostNetworkConfig {
    /// As in `10.0.0.0/8`: every address of the machine in this range.
    pub cidr: Option<String>,
    /// As in `eth1`: every address of this interface.
    pub interface: Option<String>,
    /// Ports and ranges of them that are not for allocations on these addresses, as in
    /// `22,8000-8010`.
    pub reserved_ports: String,
}

/// A directory of the machine that jobs may ask for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HostVolumeConfig {
    /// Absolute; it has to be there when the agent starts.
    pub path: PathBuf,
    /// Only for volumes that a job asks for with `read_only`.
    pub read_only: bool,
}

/// Which drivers the node offers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DriversConfig {
    /// Plain processes with the agent's own rights. Nomad has it off by default; here it is the one
    /// driver that does work, so an operator who shares a cluster turns it off.
    pub raw_exec: bool,
    /// Tasks that only pretend. A job has to ask for it by name, so it does no harm.
    pub mock_driver: bool,
    /// The program that supervises a task, and what comes before the directory on its command
    /// line; empty: the agent's own program and its hidden subcommand.
    #[serde(with = "list")]
    pub supervisor: Vec<String>,
    /// The slice for tasks' control groups; empty: use none.
    pub cgroup_parent: String,
}

/// When directories of allocations that have ended are removed before the servers forget them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct GcConfig {
    /// How often it is looked whether there is room.
    #[serde(with = "duration")]
    pub interval: Duration,
    /// Percent of the file system in use. Source: Nomad's default, as are the others.
    pub disk_usage_threshold: u8,
    /// Percent of its inodes in use.
    pub inode_usage_threshold: u8,
    /// Allocations on the node, running ones too.
    pub max_allocs: usize,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            gateways: vec!["http://127.0.0.1:4646".to_owned()],
            data_dir: None,
            listen: ListenConfig::default(),
            telemetry: TelemetryConfig::default(),
            name: None,
            datacenter: "dc1".to_owned(),
            region: "global".to_owned(),
            node_pool: "default".to_owned(),
            node_class: String::new(),
            meta: BTreeMap::new(),
            host_ip: None,
            host_networks: BTreeMap::new(),
            host_volumes: BTreeMap::new(),
            cpu_total_compute: 0,
            memory_total_mb: 0,
            disk_total_mb: 0,
            reserved: ReservedConfig::default(),
            reservable_cores: String::new(),
            node_max_allocs: 0,
            devices: Vec::new(),
            min_dynamic_port: 20_000,
            max_dynamic_port: 32_000,
            drivers: DriversConfig::default(),
            max_kill_timeout: Duration::from_secs(30),
            gc: GcConfig::default(),
            fingerprint_interval: Duration::from_secs(60),
            stop_tasks_on_exit: false,
            shutdown_grace_period: DEFAULT_SHUTDOWN_GRACE_PERIOD,
        }
    }
}

impl Default for DriversConfig {
    fn default() -> Self {
        Self {
            raw_exec: true,
            mock_driver: true,
            supervisor: Vec::new(),
            cgroup_parent: "kafila.slice".to_owned(),
        }
    }
}

impl Default for GcConfig {
    fn default() -> Self {
        Self {
            interval: Duration::from_secs(60),
            disk_usage_threshold: 80,
            inode_usage_threshold: 70,
            max_allocs: 50,
        }
    }
}

/// The longest name of a datacenter, class or node that gateways take, in bytes.
const MAX_NAME_BYTES: usize = 128;

impl Config {
    /// Finds what every gateway would refuse, or what makes no sense, before anything is started:
    /// asking again would not help.
    ///
    /// # Errors
    /// The first setting that is wrong.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let wrong = |field: &str, problem: String| {
            Err(Error::Setting {
                field: field.to_owned(),
                problem,
            })
        };
        if self.datacenter.is_empty() {
            return wrong("datacenter", "is empty: want a name, as in dc1".to_owned());
        }
        let name = self.name.as_deref().unwrap_or("from the host");
        if name.is_empty() {
            let problem = "is empty: want a name, or leave it out for the host's".to_owned();
            return wrong("name", problem);
        }
        for (field, text) in [("datacenter", self.datacenter.as_str()), ("name", name)] {
            if text.len() > MAX_NAME_BYTES {
                let problem = format!("has {} bytes: want at most {MAX_NAME_BYTES}", text.len());
                return wrong(field, problem);
            }
        }
        if self.node_pool == NodePool::ALL {
            let problem =
                "\"all\" means every pool: want the name of one, as in default".to_owned();
            return wrong("node_pool", problem);
        }
        if let Some(problem) = NodePool::name_problem(&self.node_pool) {
            return wrong("node_pool", problem);
        }
        if self.min_dynamic_port > self.max_dynamic_port {
            let problem = format!(
                "{} is above `max_dynamic_port`, {}: want a range such as 20000 to 32000",
                self.min_dynamic_port, self.max_dynamic_port
            );
            return wrong("min_dynamic_port", problem);
        }
        for (field, percent) in [
            ("gc.disk_usage_threshold", self.gc.disk_usage_threshold),
            ("gc.inode_usage_threshold", self.gc.inode_usage_threshold),
        ] {
            if percent > 100 {
                let problem = format!("{percent} is no percentage: want 0 to 100, 100 for never");
                return wrong(field, problem);
            }
        }
        for (field, span) in [
            ("gc.interval", self.gc.interval),
            ("fingerprint_interval", self.fingerprint_interval),
        ] {
            if span.is_zero() {
                let problem =
                    "is 0s, which would keep a core busy: want a span, as in 1m".to_owned();
                return wrong(field, problem);
            }
        }
        Ok(())
    }
}

impl service_kit::print::Documented for Config {
    const SOURCE: &'static str = include_str!("config.rs");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_gateway_would_take_is_refused_before_anything_is_started() {
        assert!(Config::default().check().is_ok());
        type Change = fn(&mut Config);
        let table: [(&str, Change); 10] = [
            ("node_pool", |it| it.node_pool = "a b".to_owned()),
            ("node_pool", |it| it.node_pool = "all".to_owned()),
            ("datacenter", |it| it.datacenter.clear()),
            ("datacenter", |it| it.datacenter = "d".repeat(129)),
            ("name", |it| it.name = Some(String::new())),
            ("min_dynamic_port", |it| it.min_dynamic_port = 40_000),
            ("gc.disk_usage_threshold", |it| {
                it.gc.disk_usage_threshold = 150;
            }),
            ("gc.inode_usage_threshold", |it| {
                it.gc.inode_usage_threshold = 101;
            }),
            ("gc.interval", |it| it.gc.interval = Duration::ZERO),
            ("fingerprint_interval", |it| {
                it.fingerprint_interval = Duration::ZERO;
            }),
        ];
        for (field, change) in table {
            let mut config = Config::default();
            change(&mut config);
            let message = config.check().unwrap_err().to_string();
            assert!(message.starts_with(&format!("`{field}`: ")), "{message}");
        }
    }
}
