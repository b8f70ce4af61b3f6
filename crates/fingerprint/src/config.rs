//! Settings of the machine's record: the operator's figures, names, reservations and offers.
//!
//! They are part of the node's configuration file, which an agent prints with [`SOURCE`].

use std::collections::BTreeMap;
use std::path::PathBuf;

use model::NodePool;
use model::node::MAX_NAME_BYTES;
use serde::{Deserialize, Serialize};

/// The source of the sections, for a configuration file that explains itself.
pub const SOURCE: &str = include_str!("config.rs");

/// Declares `pub struct Config` of an agent, in its `config.rs`, from the settings of the node's record and its
/// own. Own fields have a default, as in `pub gateways: Vec<String> = Vec::new(),`.
///
/// It is a macro because serde's `flatten` neither rejects unknown keys nor knows the line of a wrong value. The
/// comments are printed by `-print-config`, so they are written for operators.
#[macro_export]
macro_rules! config {
    ($($own:tt)*) => {
        $crate::declare_config! {
            pub struct Config {
                /// The node's name; by default the host name.
                pub name: Option<String> = None,
                /// Datacenter of the node; jobs list the datacenters that they may run in.
                pub datacenter: String = "dc1".to_owned(),
                /// Pool of the node; a job runs in one pool.
                pub node_pool: String = "default".to_owned(),
                /// Free name for the kind of machine; empty: none.
                pub node_class: String = String::new(),
                /// Free metadata, read in jobs as `${meta.rack}`.
                pub meta: std::collections::BTreeMap<String, String> = Default::default(),
                /// Gateways do not dial the node at `listen`: for logs, files, commands and all else they use
                /// connections that the node opens to them. For nodes behind NAT or a firewall. Without it, gateways
                /// dial first, and use the node's connections if that fails.
                pub dial_out: bool = false,
                /// Address of tasks' ports; by default the source address of the default route, without one the
                /// address at which gateways reach the node, if the machine has it.
                pub host_ip: Option<std::net::IpAddr> = None,
                /// More addresses for ports, by the alias that a port's `host_network` names, as in
                /// `[host_networks.public]`; the alias `default` takes the place of `host_ip`. Keys: `interface`
                /// (`eth1`) or `cidr` (`10.0.0.0/8`), and `reserved_ports` (`22,8000-8010`).
                pub host_networks: std::collections::BTreeMap<String, $crate::HostNetworkConfig> =
                    Default::default(),
                /// Directories that jobs may ask for, by the name in a volume's `source`, as in
                /// `[host_volumes.data]`. Keys: `path`, absolute, of a directory that exists, and `read_only`.
                pub host_volumes: std::collections::BTreeMap<String, $crate::HostVolumeConfig> =
                    Default::default(),
                /// Total of all cores, in MHz; 0: detected.
                pub cpu_total_compute: u64 = 0,
                /// Total memory in MiB; 0: detected.
                pub memory_total_mb: u64 = 0,
                /// Total disk space in MiB; 0: the size of the file system of `data_dir`.
                pub disk_total_mb: u64 = 0,
                /// Resources of the machine that allocations do not get.
                pub reserved: $crate::ReservedConfig = Default::default(),
                /// Cores that may be dedicated to a task, as in `0-3,7`; empty: all that the agent may run on,
                /// except `reserved.cores`.
                pub reservable_cores: String = String::new(),
                /// Maximum number of allocations on the node; 0: as many as fit.
                pub node_max_allocs: u32 = 0,
                /// Devices that may be assigned to tasks: `[[devices]]` with `vendor`, `type`, `name`,
                /// `instances` (their ids), `unhealthy` (ids that are not assigned), `attributes` and `env`, the
                /// variable that lists a task's instances.
                pub devices: Vec<$crate::DeviceConfig> = Vec::new(),
                /// First port of the range for dynamic ports. Source: Nomad's default.
                pub min_dynamic_port: u16 = 20_000,
                /// Last port of the range for dynamic ports, inclusive.
                pub max_dynamic_port: u16 = 32_000,
            }
            $($own)*
        }
    };
}

/// The second half of [`config!`](crate::config!): the struct with both sets of fields.
#[doc(hidden)]
#[macro_export]
macro_rules! declare_config {
    (@struct $( $(#[$attribute:meta])* pub $field:ident: $kind:ty = $default:expr, )*) => {
        #[derive(Clone, Debug, PartialEq, Eq, ::serde::Serialize, ::serde::Deserialize)]
        #[serde(default, deny_unknown_fields)]
        pub struct Config {
            $( $(#[$attribute])* pub $field: $kind, )*
        }

        impl Default for Config {
            fn default() -> Self {
                Self {
                    $( $field: $default, )*
                }
            }
        }
    };
    (pub struct Config { $($shared:tt)* } pub struct Config {}) => {
        $crate::declare_config! { @struct $($shared)* }
    };
    (
        pub struct Config {
            $( $(#[$attribute:meta])* pub $field:ident: $kind:ty = $default:expr, )*
        }
        pub struct Config { $($own:tt)* }
    ) => {
        $crate::declare_config! {
            @struct $( $(#[$attribute])* pub $field: $kind = $default, )* $($own)*
        }

        impl Config {
            /// Returns the settings of the node's record.
            pub fn fingerprint(&self) -> $crate::Config {
                $crate::Config {
                    $( $field: self.$field.clone(), )*
                }
            }
        }
    };
}

// The settings alone.
config! {
    pub struct Config {}
}

impl Config {
    /// Returns the name of the node: the configured one, or the host's.
    pub fn node_name(&self) -> String {
        self.name.clone().unwrap_or_else(crate::host::name)
    }

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

/// Resources of the machine that allocations do not get.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ReservedConfig {
    /// Reserved compute in MHz, in addition to that of `cores`.
    pub cpu: u64,
    /// Cores that are never dedicated to a task, as in `0-1`; allocations do not get their compute either.
    pub cores: String,
    /// Reserved memory in MiB.
    pub memory_mb: u64,
    /// Reserved disk space in MiB.
    pub disk_mb: u64,
    /// Ports and port ranges that allocations do not get on any address, as in `22,8000-8010`.
    pub reserved_ports: String,
}

/// Addresses of the machine, selected by a range or by an interface, not both.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HostNetworkConfig {
    /// Range of addresses, as in `10.0.0.0/8`: every address of the machine in it.
    pub cidr: Option<String>,
    /// Name of an interface, as in `eth1`: every address of it.
    pub interface: Option<String>,
    /// Ports and port ranges that allocations do not get on these addresses, as in
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
