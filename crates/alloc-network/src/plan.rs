//! The network that an allocation asks for: its mode, mapped ports, names and CNI arguments. No I/O.

use std::collections::BTreeMap;
use std::net::IpAddr;

use model::job::Dns;
use model::node::DEFAULT_HOST_NETWORK;
use model::{AllocId, AllocatedPort, Allocation, Job, TaskGroup};
use serde::{Deserialize, Serialize};

use crate::config::NetworkConfig;

/// Mode of a group's network that is a namespace of its own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// A loopback interface alone.
    None,
    Bridge,
    /// The network of this name in the directory of CNI configurations.
    Cni(String),
}

impl Mode {
    /// Returns the mode of a group's network; `None`: the tasks use the host's.
    pub fn of(group: &TaskGroup) -> Option<Self> {
        let mode = group.networks.first()?.mode.as_str();
        match mode {
            "none" => Some(Self::None),
            "bridge" => Some(Self::Bridge),
            _ => Some(Self::Cni(mode.strip_prefix("cni/")?.to_owned())),
        }
    }
}

/// A port of the host that leads to one in the namespace, for TCP and UDP.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortMapping {
    /// `None`: every address of the host.
    pub host_ip: Option<IpAddr>,
    pub host_port: u16,
    pub to: u16,
}

/// Texts of a group's network after the replacement of their references.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names {
    /// Empty: the start of the allocation's id.
    pub hostname: String,
    pub dns: Dns,
    /// CNI arguments of the job.
    pub cni_args: BTreeMap<String, String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    pub alloc_id: AllocId,
    pub mode: Mode,
    pub ports: Vec<PortMapping>,
    pub hostname: String,
    pub dns: Dns,
    /// Value of `CNI_ARGS`.
    pub cni_args: String,
}

impl Plan {
    /// Returns the plan of an allocation; `None`: its tasks use the host's network.
    pub fn new(
        job: &Job,
        group: &TaskGroup,
        alloc: &Allocation,
        names: Names,
        config: &NetworkConfig,
    ) -> Option<Self> {
        let mode = Mode::of(group)?;
        let mapped = |port| mapping(port, group, config);
        let ports = match mode {
            // Nothing can be reached.
            Mode::None => Vec::new(),
            _ => alloc.resources.group_ports().map(mapped).collect(),
        };
        let hostname = match names.hostname {
            none if none.is_empty() => alloc.id.short(),
            hostname => hostname,
        };
        Some(Self {
            alloc_id: alloc.id,
            mode,
            ports,
            hostname,
            dns: names.dns,
            cni_args: cni_args(job, group, alloc, names.cni_args),
        })
    }
}

fn mapping(port: &AllocatedPort, group: &TaskGroup, config: &NetworkConfig) -> PortMapping {
    let mut asked = group.networks.iter().flat_map(|network| &network.ports);
    let names_network = asked
        .find(|asked| asked.label == port.label)
        .is_some_and(|asked| !matches!(asked.host_network.as_str(), "" | DEFAULT_HOST_NETWORK));
    let is_everywhere = config.bind_wildcard_default_host_network && !names_network;
    PortMapping {
        host_ip: port.host_ip.parse().ok().filter(|_| !is_everywhere),
        host_port: port.value,
        to: if port.to > 0 { port.to } else { port.value },
    }
}

/// Returns `CNI_ARGS`: facts of the allocation, which the job's own arguments cannot override.
///
/// Source: Nomad's public list. Arguments with a `;` would end early, so they are left out.
fn cni_args(
    job: &Job,
    group: &TaskGroup,
    alloc: &Allocation,
    own: BTreeMap<String, String>,
) -> String {
    let mut args = own;
    args.retain(|name, value| {
        !name.is_empty() && !name.contains([';', '=']) && !value.contains(';')
    });
    for (name, value) in [
        ("IgnoreUnknown", "true".to_owned()),
        ("NOMAD_REGION", job.region.clone()),
        ("NOMAD_NAMESPACE", job.namespace.clone()),
        ("NOMAD_JOB_ID", job.id.clone()),
        ("NOMAD_GROUP_NAME", group.name.clone()),
        ("NOMAD_ALLOC_ID", alloc.id.to_string()),
    ] {
        args.remove(name);
        if !value.contains(';') {
            args.insert(name.to_owned(), value);
        }
    }
    let pairs: Vec<String> = args
        .iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    pairs.join(";")
}
