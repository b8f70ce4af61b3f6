//! Network of a task group, or of a task: its mode, ports and resolver.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Ports, and the network they are on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Network {
    /// `host`, `bridge`, `none` or `cni/<name>` in a group; as written in a task.
    pub mode: String,
    pub ports: Vec<Port>,
    /// As written; without effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mbits: Option<u32>,
    /// Host name of the allocation; empty: the driver's choice. May contain references.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub hostname: String,
    /// `None`: the node's resolver.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dns: Option<Dns>,
    /// Values for the plugins of a `cni/<name>` network. May contain references.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub cni_args: BTreeMap<String, String>,
}

/// The resolver of an allocation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dns {
    pub servers: Vec<String>,
    pub searches: Vec<String>,
    pub options: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Port {
    pub label: String,
    /// This very port of the host; `None`: one chosen by the scheduler.
    pub static_port: Option<u16>,
    /// The port inside the task's network; `None`: the same as on the host.
    pub to: Option<u16>,
    /// An alias of addresses of the node, or a reference to one, as in `${meta.network}`.
    pub host_network: String,
    /// Assigns a static port that is in use already.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ignore_collision: bool,
}
