//! Settings of the machine's record: the operator's figures, names, reservations and offers.
//!
//! The sections and their doc comments are part of the node's configuration file, which an agent
//! prints with [`SOURCE`].

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;

use model::NodePool;
use model::node::MAX_NAME_BYTES;
use serde::{Deserialize, Serialize};

/// The source of the sections, for a configuration file that explains itself.
pub const SOURCE: &str = include_str!("config.rs");

/// Settings that the node's record depends on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Config {
    /// The node's name; `None`: the machine's host name.
    pub name: Option<String>,
    pub datacenter: String,
    pub node_pool: String,
    /// Empty: none.
    pub node_class: String,
    pub meta: BTreeMap<String, String>,
    /// `None`: the source address of the default route.
    pub host_ip: Option<IpAddr>,
    /// Alias → addresses.
    pub host_networks: BTreeMap<String, HostNetworkConfig>,
    /// Name → directory.
    pub host_volumes: BTreeMap<String, HostVolumeConfig>,
    /// Total of all cores in MHz; 0: as found.
    pub cpu_total_compute: u64,
    /// In MiB; 0: as found.
    pub memory_total_mb: u64,
    /// In MiB; 0: the size of the allocations' file system.
    pub disk_total_mb: u64,
    pub reserved: ReservedConfig,
    /// A core list such as `0-3,7`; empty: all cores that the agent may run on.
    pub reservable_cores: String,
    /// 0: no limit.
    pub node_max_allocs: u32,
    pub devices: Vec<DeviceConfig>,
    pub min_dynamic_port: u16,
    /// Inclusive.
    pub max_dynamic_port: u16,
}

impl Config {
    /// Refuses settings that every gateway would refuse in the node's record: a retry would not help.
    ///
    /// # Errors
    /// The first setting that is wrong, and its problem.
    pub fn check(&self) -> Result<(), (&'static str, String)> {
        if self.datacenter.is_empty() {
            return Err(("datacenter", "is empty: want a name, as in dc1".to_owned()));
        }
        let name = self.name.as_deref().unwrap_or("from the host");
        if name.is_empty() {
            let problem = "is empty: want a name, or leave it out for the host's".to_owned();
            return Err(("name", problem));
        }
        for (field, text) in [("datacenter", self.datacenter.as_str()), ("name", name)] {
            if text.len() > MAX_NAME_BYTES {
                let problem = format!("has {} bytes: want at most {MAX_NAME_BYTES}", text.len());
                return Err((field, problem));
            }
        }
        if self.node_pool == NodePool::ALL {
            let problem =
                "\"all\" means every pool: want the name of one, as in default".to_owned();
            return Err(("node_pool", problem));
        }
        if let Some(problem) = NodePool::name_problem(&self.node_pool) {
            return Err(("node_pool", problem));
        }
        if self.min_dynamic_port > self.max_dynamic_port {
            let problem = format!(
                "{} is above `max_dynamic_port`, {}: want a range such as 20000 to 32000",
                self.min_dynamic_port, self.max_dynamic_port
            );
            return Err(("min_dynamic_port", problem));
        }
        Ok(())
    }
}

/// Resources of the machine that are withheld from allocations.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ReservedConfig {
    /// In MHz, in addition to the compute of `cores`.
    pub cpu: u64,
    /// Cores that are never dedicated to a task, as in `0-1`; their compute is withheld as well.
    pub cores: String,
    /// In MiB.
    pub memory_mb: u64,
    /// In MiB.
    pub disk_mb: u64,
    /// Ports and port ranges, withheld on every address, as in `22,8000-8010`.
    pub reserved_ports: String,
}

/// Addresses of the machine, selected by a range or by an interface, not both.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HostNetworkConfig {
    /// As in `10.0.0.0/8`: every address of the machine in this range.
    pub cidr: Option<String>,
    /// As in `eth1`: every address of this interface.
    pub interface: Option<String>,
    /// Ports and port ranges that are withheld from allocations on these addresses, as in
    /// `22,8000-8010`.
    pub reserved_ports: String,
}

/// A directory of the machine that jobs may ask for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HostVolumeConfig {
    /// Absolute; has to exist when the agent starts.
    pub path: PathBuf,
    /// Only for volumes that a job asks for with `read_only`.
    pub read_only: bool,
}

/// Devices of one kind, as in `nvidia/gpu/1080ti`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DeviceConfig {
    pub vendor: String,
    #[serde(rename = "type")]
    pub device_type: String,
    pub name: String,
    /// The device ids, in the form that the software using them expects.
    pub instances: Vec<String>,
    /// Ids in `instances` that are not given to tasks.
    pub unhealthy: Vec<String>,
    /// Read in jobs as `${device.attr.memory}`; a value may have a unit, as in `8 GiB`.
    pub attributes: BTreeMap<String, String>,
    /// The environment variable that lists a task's instances; empty: none.
    pub env: String,
}
