//! Nodes: machines that run allocations.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::csi::CsiPluginInfo;
use crate::drain::{DrainStrategy, LastDrain, NodeEvent};
use crate::ids::NodeId;
use crate::node_pool::NodePool;
use crate::resources::ComparableResources;
use crate::time::Timestamp;

/// Prefix of attributes and meta keys that differ from node to node by intent.
pub const UNIQUE_PREFIX: &str = "unique.";

/// The host network that a port is on when its job names none.
pub const DEFAULT_HOST_NETWORK: &str = "default";

/// The longest name of a node, datacenter, pool or class that makes sense in a column of a table, in
/// bytes.
pub const MAX_NAME_BYTES: usize = 128;

/// The default of `heartbeat_ttl`, of which a gateway passes its value to the nodes and the
/// cluster-controller expects its value of them. 10 s at every cluster size, as in
/// docs/decisions/0033-one-heartbeat-ttl-at-every-cluster-size.md.
pub const DEFAULT_HEARTBEAT_TTL: Duration = Duration::from_secs(10);

/// The value of `node/<id>`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Node {
    /// Stands in the key, so the stored value leaves it out; filled in on read.
    #[serde(skip)]
    pub id: NodeId,
    /// Proves the identity of the node's sessions; never sent to API callers.
    pub secret: String,
    pub name: String,
    pub datacenter: String,
    pub node_pool: String,
    /// Set by the node's operator; empty: none.
    pub node_class: String,
    /// Address of the node's own gRPC service (logs, files), as in `http://127.0.0.1:7201`.
    pub address: String,
    /// Fingerprint, as in `kernel.name` → `linux`; read as `${attr.kernel.name}`.
    pub attributes: BTreeMap<String, String>,
    /// Set by the node's operator; read as `${meta.rack}`.
    pub meta: BTreeMap<String, String>,
    pub drivers: BTreeMap<String, DriverInfo>,
    pub resources: ComparableResources,
    /// The part of `resources` that allocations cannot use.
    pub reserved: ComparableResources,
    /// Ports that allocations cannot use.
    pub reserved_ports: Vec<u16>,
    /// Range of the dynamic ports, both ends inclusive.
    pub min_dynamic_port: u16,
    pub max_dynamic_port: u16,
    /// Address of ports without a host network, unless `host_networks` has the alias `default`.
    pub host_ip: String,
    /// Alias → addresses; the `host_network` of a port names an alias.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub host_networks: BTreeMap<String, HostNetwork>,
    /// Core → MHz; only cores that tasks may reserve.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub cores: BTreeMap<u16, u32>,
    /// Largest number of allocations; 0: no limit.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub max_allocs: u32,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub devices: Vec<NodeDevice>,
    /// Name → directory that jobs may mount.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub host_volumes: BTreeMap<String, HostVolume>,
    /// Plugin → its node service on this node.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub csi_nodes: BTreeMap<String, CsiPluginInfo>,
    /// Plugin → its controller service on this node.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub csi_controllers: BTreeMap<String, CsiPluginInfo>,
    /// Gateways do not dial `address`: they use connections that the node opens.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dials_out: bool,
    /// Hash of the properties that constraints can refer to and that nodes can share: nodes of one class
    /// are equally feasible.
    pub computed_class: String,
    pub status: NodeStatus,
    pub status_description: String,
    pub eligibility: NodeEligibility,
    /// The time at which `status` last changed.
    pub status_updated_at: Timestamp,
    /// The drain in progress; `None`: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drain: Option<DrainStrategy>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_drain: Option<LastDrain>,
    /// Oldest first, at most [`NODE_EVENTS_MAX`](crate::drain::NODE_EVENTS_MAX).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<NodeEvent>,
    /// Some jobs of the node may lack an evaluation of this record: the evaluations did not fit in its
    /// transaction, or it has other addresses than the record before. The cluster-controller creates them
    /// and ends this.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub lacks_evals: bool,
}

impl Node {
    /// Tells whether the node is in a pool; every node is in [`NodePool::ALL`].
    pub fn is_in_pool(&self, name: &str) -> bool {
        name == NodePool::ALL || self.node_pool == name
    }

    /// Returns the resources that allocations may use.
    pub fn available(&self) -> ComparableResources {
        self.resources.minus(self.reserved)
    }

    /// Returns the addresses of a host network in the order in which they are tried; `None`: unknown
    /// alias.
    pub fn addresses(&self, alias: &str) -> Option<&[String]> {
        match self.host_networks.get(alias) {
            Some(network) => Some(&network.addresses),
            None if alias == DEFAULT_HOST_NETWORK => Some(std::slice::from_ref(&self.host_ip)),
            None => None,
        }
    }

    /// Tells whether `address` is one of its host addresses, of whatever host network.
    pub fn has_address(&self, address: &str) -> bool {
        let mut networks = self.host_networks.values();
        self.host_ip == address
            || networks.any(|network| network.addresses.iter().any(|other| other == address))
    }

    /// Tells whether a port of one of its addresses is reserved.
    pub fn is_port_reserved(&self, address: &str, port: u16) -> bool {
        if self.reserved_ports.contains(&port) {
            return true;
        }
        let mut networks = self.host_networks.values();
        networks.any(|network| {
            network.reserved_ports.contains(&port)
                && network.addresses.iter().any(|other| other == address)
        })
    }

    /// Tells whether new allocations may be placed on it.
    pub fn is_schedulable(&self) -> bool {
        self.status == NodeStatus::Ready && self.eligibility == NodeEligibility::Eligible
    }
}

fn is_zero(value: &u32) -> bool {
    *value == 0
}

/// Addresses of a node under one alias.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostNetwork {
    /// Tried in this order: a port is assigned on the first address where it is free.
    pub addresses: Vec<String>,
    /// Ports of these addresses that allocations cannot use.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reserved_ports: Vec<u16>,
}

/// Devices of one model, as in `nvidia/gpu/1080ti`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeDevice {
    pub vendor: String,
    #[serde(rename = "type")]
    pub device_type: String,
    pub name: String,
    /// As in `memory` → `8 GiB`; read as `${device.attr.memory}`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub attributes: BTreeMap<String, String>,
    /// Environment variable that lists the task's instances; empty: none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub env: String,
    pub instances: Vec<DeviceInstance>,
}

/// One device.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceInstance {
    pub id: String,
    pub healthy: bool,
}

/// A directory of the node that jobs may mount.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostVolume {
    pub path: String,
    pub read_only: bool,
}

/// State of a task driver on a node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DriverInfo {
    pub detected: bool,
    pub healthy: bool,
    pub description: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NodeStatus {
    Initializing,
    Ready,
    Disconnected,
    Down,
}

impl NodeStatus {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Initializing => "initializing",
            Self::Ready => "ready",
            Self::Disconnected => "disconnected",
            Self::Down => "down",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NodeEligibility {
    Eligible,
    Ineligible,
}

impl NodeEligibility {
    pub const ALL: [Self; 2] = [Self::Eligible, Self::Ineligible];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Eligible => "eligible",
            Self::Ineligible => "ineligible",
        }
    }
}
