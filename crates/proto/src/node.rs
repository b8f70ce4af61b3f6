//! Nodes. Messages do not contain the secret: it is empty after reading one.

use std::collections::{BTreeMap, HashMap};

use model::node::{DeviceInstance, DriverInfo, HostNetwork, HostVolume, NodeDevice};
use model::resources::ComparableResources;
use model::{FieldErrors, Indexed, Node, NodeEligibility, NodeEvent, NodeStatus};

use crate::csi;
use crate::drain::{read_drain, read_last_drain};
use crate::fields::{At as _, Read, each, each_value, id, narrow, optional_word, time};
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

    /// Reads a node's record. Registrations leave out the fields of the servers: the node is then
    /// initializing and eligible.
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
        host_networks: each_value(wire.host_networks, read_host_network).at("host_networks")?,
        cores: read_cores(wire.core_mhz).at("core_mhz")?,
        max_allocs: wire.max_allocs,
        devices: wire.devices.into_iter().map(NodeDevice::from).collect(),
        host_volumes: wire
            .host_volumes
            .into_iter()
            .map(|(name, volume)| (name, HostVolume::from(volume)))
            .collect(),
        csi_nodes: each_value(wire.csi_nodes, csi::read_plugin).at("csi_nodes")?,
        csi_controllers: each_value(wire.csi_controllers, csi::read_plugin)
            .at("csi_controllers")?,
        dials_out: wire.dials_out,
        computed_class: wire.computed_class,
        status: optional_word(&wire.status, &STATUSES, NodeStatus::as_str)
            .at("status")?
            .unwrap_or(NodeStatus::Initializing),
        status_description: wire.status_description,
        eligibility: optional_word(&wire.eligibility, &ELIGIBILITIES, NodeEligibility::as_str)
            .at("eligibility")?
            .unwrap_or(NodeEligibility::Eligible),
        status_updated_at: time(wire.status_updated_at_ns),
        drain: wire.drain.map(read_drain).transpose().at("drain")?,
        last_drain: wire
            .last_drain
            .map(read_last_drain)
            .transpose()
            .at("last_drain")?,
        events: wire.events.into_iter().map(NodeEvent::from).collect(),
        lacks_evals: false,
    })
}

fn read_host_network(wire: v1::HostNetwork) -> Read<HostNetwork> {
    Ok(HostNetwork {
        addresses: wire.addresses,
        reserved_ports: each(wire.reserved_ports, |port| narrow(port, u16::MAX))
            .at("reserved_ports")?,
    })
}

fn read_cores(wire: HashMap<u32, u32>) -> Read<BTreeMap<u16, u32>> {
    let cores = wire.into_iter();
    cores
        .map(|(core, mhz)| Ok((narrow(core, u16::MAX)?, mhz)))
        .collect()
}

impl From<&HostNetwork> for v1::HostNetwork {
    fn from(network: &HostNetwork) -> Self {
        let reserved = network.reserved_ports.iter();
        Self {
            addresses: network.addresses.clone(),
            reserved_ports: reserved.copied().map(u32::from).collect(),
        }
    }
}

impl From<v1::NodeDevice> for NodeDevice {
    fn from(wire: v1::NodeDevice) -> Self {
        let instance = |wire: v1::DeviceInstance| DeviceInstance {
            id: wire.id,
            healthy: wire.healthy,
        };
        Self {
            vendor: wire.vendor,
            device_type: wire.r#type,
            name: wire.name,
            attributes: wire.attributes.into_iter().collect(),
            env: wire.env,
            instances: wire.instances.into_iter().map(instance).collect(),
        }
    }
}

impl From<&NodeDevice> for v1::NodeDevice {
    fn from(device: &NodeDevice) -> Self {
        let instance = |instance: &DeviceInstance| v1::DeviceInstance {
            id: instance.id.clone(),
            healthy: instance.healthy,
        };
        Self {
            vendor: device.vendor.clone(),
            r#type: device.device_type.clone(),
            name: device.name.clone(),
            attributes: device.attributes.clone().into_iter().collect(),
            env: device.env.clone(),
            instances: device.instances.iter().map(instance).collect(),
        }
    }
}

impl From<v1::HostVolume> for HostVolume {
    fn from(wire: v1::HostVolume) -> Self {
        Self {
            path: wire.path,
            read_only: wire.read_only,
        }
    }
}

impl From<&HostVolume> for v1::HostVolume {
    fn from(volume: &HostVolume) -> Self {
        Self {
            path: volume.path.clone(),
            read_only: volume.read_only,
        }
    }
}

impl From<v1::NodeResources> for ComparableResources {
    fn from(wire: v1::NodeResources) -> Self {
        Self {
            cpu_mhz: wire.cpu_mhz,
            memory_mib: wire.memory_mib,
            disk_mib: wire.disk_mib,
        }
    }
}

impl From<ComparableResources> for v1::NodeResources {
    fn from(resources: ComparableResources) -> Self {
        Self {
            cpu_mhz: resources.cpu_mhz,
            memory_mib: resources.memory_mib,
            disk_mib: resources.disk_mib,
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
            host_networks: node
                .host_networks
                .iter()
                .map(|(alias, network)| (alias.clone(), network.into()))
                .collect(),
            core_mhz: node
                .cores
                .iter()
                .map(|(core, mhz)| (u32::from(*core), *mhz))
                .collect(),
            max_allocs: node.max_allocs,
            devices: node.devices.iter().map(Into::into).collect(),
            host_volumes: node
                .host_volumes
                .iter()
                .map(|(name, volume)| (name.clone(), volume.into()))
                .collect(),
            csi_nodes: csi::plugins(&node.csi_nodes),
            csi_controllers: csi::plugins(&node.csi_controllers),
            dials_out: node.dials_out,
            computed_class: node.computed_class.clone(),
            status: node.status.as_str().to_owned(),
            status_description: node.status_description.clone(),
            eligibility: node.eligibility.as_str().to_owned(),
            status_updated_at_ns: node.status_updated_at.0,
            create_index: 0,
            modify_index: 0,
            drain: node.drain.as_ref().map(Into::into),
            last_drain: node.last_drain.as_ref().map(Into::into),
            events: node.events.iter().map(Into::into).collect(),
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
