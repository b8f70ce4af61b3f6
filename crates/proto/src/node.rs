//! Nodes. The secret never stands in the message: it is empty after reading one.

use model::node::DriverInfo;
use model::resources::ComparableResources;
use model::{FieldErrors, Indexed, Node, NodeEligibility, NodeStatus};

use crate::fields::{At as _, Read, each, id, narrow, optional_word, time};
use crate::v1;

const STATUSES: [NodeStatus; 4] = [
    NodeStatus::Initializing,
    NodeStatus::Ready,
    NodeStatus::Disconnected,
    NodeStatus::Down,
];

const ELIGIBILITIES: [NodeEligibility; 2] =
    [NodeEligibility::Eligible, NodeEligibility::Ineligible];

impl TryFrom<v1::Node> for Node {
    type Error = FieldErrors;

    /// Reads a node's record. A node that registers leaves out what the servers set: it is
    /// initializing and eligible then.
    fn try_from(wire: v1::Node) -> Result<Self, FieldErrors> {
        read(wire).at("node")
    }
}

fn read(wire: v1::Node) -> Read<Node> {
    Ok(Node {
        id: id(&wire.id).at("id")?,
        secret: String::new(),
        name: wire.name,
        datacenter: wire.datacenter,
        node_pool: wire.node_pool,
        node_class: wire.node_class,
        address: wire.address,
        attributes: wire.attributes.into_iter().collect(),
        meta: wire.meta.into_iter().collect(),
        drivers: wire
            .drivers
            .into_iter()
            .map(|(name, driver)| (name, DriverInfo::from(driver)))
            .collect(),
        resources: wire.resources.unwrap_or_default().into(),
        reserved: wire.reserved.unwrap_or_default().into(),
        reserved_ports: each(wire.reserved_ports, |port| narrow(port, u16::MAX))
            .at("reserved_ports")?,
        min_dynamic_port: narrow(wire.min_dynamic_port, u16::MAX).at("min_dynamic_port")?,
        max_dynamic_port: narrow(wire.max_dynamic_port, u16::MAX).at("max_dynamic_port")?,
        host_ip: wire.host_ip,
        computed_class: wire.computed_class,
        status: optional_word(&wire.status, &STATUSES, NodeStatus::as_str)
            .at("status")?
            .unwrap_or(NodeStatus::Initializing),
        status_description: wire.status_description,
        eligibility: optional_word(&wire.eligibility, &ELIGIBILITIES, NodeEligibility::as_str)
            .at("eligibility")?
            .unwrap_or(NodeEligibility::Eligible),
        status_updated_at: time(wire.status_updated_at_ns),
    })
}

impl From<v1::NodeResources> for ComparableResources {
    fn from(wire: v1::NodeResources) -> Self {
        Self {
            cpu_mhz: wire.cpu,
            memory_mib: wire.memory_mb,
            disk_mib: wire.disk_mb,
        }
    }
}

impl From<ComparableResources> for v1::NodeResources {
    fn from(resources: ComparableResources) -> Self {
        Self {
            cpu: resources.cpu_mhz,
            memory_mb: resources.memory_mib,
            disk_mb: resources.disk_mib,
        }
    }
}

impl From<v1::DriverInfo> for DriverInfo {
    fn from(wire: v1::DriverInfo) -> Self {
        Self {
            detected: wire.detected,
            healthy: wire.healthy,
            description: wire.description,
        }
    }
}

impl From<&DriverInfo> for v1::DriverInfo {
    fn from(driver: &DriverInfo) -> Self {
        Self {
            detected: driver.detected,
            healthy: driver.healthy,
            description: driver.description.clone(),
        }
    }
}

impl From<&Node> for v1::Node {
    fn from(node: &Node) -> Self {
        Self {
            id: node.id.to_string(),
            name: node.name.clone(),
            datacenter: node.datacenter.clone(),
            node_pool: node.node_pool.clone(),
            node_class: node.node_class.clone(),
            address: node.address.clone(),
            attributes: node.attributes.clone().into_iter().collect(),
            meta: node.meta.clone().into_iter().collect(),
            drivers: node
                .drivers
                .iter()
                .map(|(name, info)| (name.clone(), info.into()))
                .collect(),
            resources: Some(node.resources.into()),
            reserved: Some(node.reserved.into()),
            reserved_ports: node.reserved_ports.iter().copied().map(u32::from).collect(),
            min_dynamic_port: u32::from(node.min_dynamic_port),
            max_dynamic_port: u32::from(node.max_dynamic_port),
            host_ip: node.host_ip.clone(),
            computed_class: node.computed_class.clone(),
            status: node.status.as_str().to_owned(),
            status_description: node.status_description.clone(),
            eligibility: node.eligibility.as_str().to_owned(),
            status_updated_at_ns: node.status_updated_at.0,
            create_index: 0,
            modify_index: 0,
        }
    }
}

impl From<&Indexed<Node>> for v1::Node {
    fn from(node: &Indexed<Node>) -> Self {
        Self {
            create_index: node.create_index,
            modify_index: node.modify_index,
            ..Self::from(&node.value)
        }
    }
}
