//! Nodes.

use std::collections::BTreeMap;

use proto::v1;
use serde::Serialize;

use crate::time;

/// A node, whole; lists print the same.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct Node<'a> {
    #[serde(rename = "ID")]
    id: &'a str,
    name: &'a str,
    datacenter: &'a str,
    node_pool: &'a str,
    node_class: &'a str,
    computed_class: &'a str,
    address: &'a str,
    attributes: BTreeMap<&'a str, &'a str>,
    meta: BTreeMap<&'a str, &'a str>,
    drivers: BTreeMap<&'a str, DriverInfo<'a>>,
    node_resources: NodeResources,
    reserved_resources: ReservedResources,
    drain: bool,
    drain_strategy: Option<DrainStrategy>,
    last_drain: Option<LastDrain<'a>>,
    events: Vec<NodeEvent<'a>>,
    scheduling_eligibility: &'a str,
    status: &'a str,
    status_description: &'a str,
    /// Unix seconds, unlike every other time.
    status_updated_at: u64,
    create_index: u64,
    modify_index: u64,
}

impl<'a> From<&'a v1::Node> for Node<'a> {
    fn from(node: &'a v1::Node) -> Self {
        let drivers = node.drivers.iter();
        Self {
            id: &node.id,
            name: &node.name,
            datacenter: &node.datacenter,
            node_pool: &node.node_pool,
            node_class: &node.node_class,
            computed_class: &node.computed_class,
            address: &node.address,
            attributes: words(&node.attributes),
            meta: words(&node.meta),
            drivers: drivers
                .map(|(name, info)| (name.as_str(), info.into()))
                .collect(),
            node_resources: NodeResources {
                min_dynamic_port: node.min_dynamic_port,
                max_dynamic_port: node.max_dynamic_port,
                amounts: node.resources.unwrap_or_default().into(),
            },
            reserved_resources: ReservedResources {
                amounts: node.reserved.unwrap_or_default().into(),
                networks: ReservedNetworks {
                    reserved_host_ports: ports(&node.reserved_ports),
                },
            },
            drain: node.drain.is_some(),
            drain_strategy: node.drain.as_ref().map(Into::into),
            last_drain: node.last_drain.as_ref().map(Into::into),
            events: node.events.iter().map(Into::into).collect(),
            scheduling_eligibility: &node.eligibility,
            status: &node.status,
            status_description: &node.status_description,
            status_updated_at: node.status_updated_at_ns / 1_000_000_000,
            create_index: node.create_index,
            modify_index: node.modify_index,
        }
    }
}

/// Durations are nanoseconds: 0 without a deadline, below 0 at once.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct DrainStrategy {
    deadline: i64,
    ignore_system_jobs: bool,
    force_deadline: Option<String>,
    started_at: Option<String>,
}

impl From<&v1::DrainStrategy> for DrainStrategy {
    fn from(drain: &v1::DrainStrategy) -> Self {
        let spec = drain.spec.unwrap_or_default();
        Self {
            deadline: spec.deadline_ns,
            ignore_system_jobs: spec.ignore_system_jobs,
            force_deadline: time::json(drain.force_deadline_ns),
            started_at: time::json(drain.started_at_ns),
        }
    }
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct LastDrain<'a> {
    started_at: Option<String>,
    updated_at: Option<String>,
    status: &'a str,
    meta: BTreeMap<&'a str, &'a str>,
}

impl<'a> From<&'a v1::LastDrain> for LastDrain<'a> {
    fn from(last: &'a v1::LastDrain) -> Self {
        Self {
            started_at: time::json(last.started_at_ns),
            updated_at: time::json(last.updated_at_ns),
            status: &last.status,
            meta: words(&last.meta),
        }
    }
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct NodeEvent<'a> {
    timestamp: Option<String>,
    subsystem: &'a str,
    message: &'a str,
    details: BTreeMap<&'a str, &'a str>,
}

impl<'a> From<&'a v1::NodeEvent> for NodeEvent<'a> {
    fn from(event: &'a v1::NodeEvent) -> Self {
        Self {
            timestamp: time::json(event.time_ns),
            subsystem: &event.subsystem,
            message: &event.message,
            details: words(&event.details),
        }
    }
}

fn words<'a, Map>(map: &'a Map) -> BTreeMap<&'a str, &'a str>
where
    &'a Map: IntoIterator<Item = (&'a String, &'a String)>,
{
    map.into_iter()
        .map(|(key, value)| (key.as_str(), value.as_str()))
        .collect()
}

fn ports(ports: &[u32]) -> String {
    let ports: Vec<String> = ports.iter().map(ToString::to_string).collect();
    ports.join(",")
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct DriverInfo<'a> {
    detected: bool,
    healthy: bool,
    health_description: &'a str,
}

impl<'a> From<&'a v1::DriverInfo> for DriverInfo<'a> {
    fn from(info: &'a v1::DriverInfo) -> Self {
        Self {
            detected: info.detected,
            healthy: info.healthy,
            health_description: &info.description,
        }
    }
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct NodeResources {
    #[serde(flatten)]
    amounts: Amounts,
    min_dynamic_port: u32,
    max_dynamic_port: u32,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct ReservedResources {
    #[serde(flatten)]
    amounts: Amounts,
    networks: ReservedNetworks,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct ReservedNetworks {
    reserved_host_ports: String,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct Amounts {
    cpu: Cpu,
    memory: Memory,
    disk: Disk,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct Cpu {
    cpu_shares: u64,
}

#[derive(Debug, Serialize)]
struct Memory {
    #[serde(rename = "MemoryMB")]
    memory_mb: u64,
}

#[derive(Debug, Serialize)]
struct Disk {
    #[serde(rename = "DiskMB")]
    disk_mb: u64,
}

impl From<v1::NodeResources> for Amounts {
    fn from(resources: v1::NodeResources) -> Self {
        Self {
            cpu: Cpu {
                cpu_shares: resources.cpu_mhz,
            },
            memory: Memory {
                memory_mb: resources.memory_mib,
            },
            disk: Disk {
                disk_mb: resources.disk_mib,
            },
        }
    }
}

/// Metadata of a node.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct Meta<'a> {
    meta: BTreeMap<&'a str, &'a str>,
    /// `null`: removed.
    dynamic: BTreeMap<&'a str, Option<&'a str>>,
    #[serde(rename = "Static")]
    fixed: BTreeMap<&'a str, &'a str>,
}

impl<'a> From<&'a v1::NodeMeta> for Meta<'a> {
    fn from(meta: &'a v1::NodeMeta) -> Self {
        let set = meta.dynamic.iter().map(|(name, value)| (name, Some(value)));
        let removed = meta.removed.iter().map(|name| (name, None));
        let dynamic = set.chain(removed);
        let texts = |map: &'a std::collections::HashMap<String, String>| {
            let pairs = map.iter().map(|(name, value)| (&**name, &**value));
            pairs.collect()
        };
        Self {
            meta: texts(&meta.merged),
            dynamic: dynamic
                .map(|(name, value)| (&**name, value.map(|value| &**value)))
                .collect(),
            fixed: texts(&meta.r#static),
        }
    }
}
