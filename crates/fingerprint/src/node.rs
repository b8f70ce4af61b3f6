//! The node's record, put together from the machine, the settings and the offers.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::Path;

use model::node::DriverInfo;
use model::{
    ComparableResources, CsiPluginInfo, Node, NodeEligibility, NodeId, NodeStatus, Timestamp,
};
use task_drivers::Fingerprint;

use crate::attributes::Attributes;
use crate::config::Config;
use crate::offers::Offers;
use crate::{cores, cpu, disk, host, memory, meta, network};

/// The attribute `nomad.version`: the last release of Nomad whose behaviour is carried over.
///
/// Jobs ask for a least version of Nomad (`${attr.nomad.version}`, `semver`, `>= 1.4.0`), which no version of
/// Kafila meets. A release rather than the later development snapshot: a pre-release sorts below its release.
/// There is no `nomad.revision`: no commit of Nomad's runs here.
const NOMAD_VERSION: &str = "2.0.5";

/// The agent's own part of the record.
#[derive(Clone, Copy, Debug)]
pub struct Agent<'a> {
    pub node_id: NodeId,
    pub secret: &'a str,
    /// The address that gateways reach the agent at.
    pub address: &'a str,
    /// The host address of the record before; `None`: there is none.
    pub host_ip: Option<IpAddr>,
    /// The allocations' directory; `None` on a node without a disk.
    pub alloc_dir: Option<&'a Path>,
    /// Driver name → the driver's own fingerprint.
    pub drivers: &'a BTreeMap<&'static str, Fingerprint>,
    /// Attributes that the agent has probed: of networks for allocations, and of Vault.
    pub probed: &'a BTreeMap<String, String>,
    pub plugins: &'a Plugins,
    /// Metadata that operators have set at run time.
    pub meta: &'a meta::Dynamic,
}

/// Plugins of storage that tasks provide to the node, by id.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plugins {
    pub nodes: BTreeMap<String, CsiPluginInfo>,
    pub controllers: BTreeMap<String, CsiPluginInfo>,
}

/// Reads the machine and returns the node's record.
///
/// Fields that the servers own have their initial values.
pub fn node(config: &Config, agent: Agent<'_>, offers: &Offers) -> Node {
    let Agent {
        address, drivers, ..
    } = agent;
    let mut attributes = Attributes::new();
    let cpu_mhz = cpu::fingerprint(config.cpu_total_compute, &mut attributes);
    let cores = cores::fingerprint(config, cpu_mhz);
    let reservable = cores.reservable.len().to_string();
    attributes.insert("cpu.reservablecores".to_owned(), reservable);
    let memory_mib = memory::fingerprint(config.memory_total_mb, &mut attributes);
    let disk_mib = disk::fingerprint(config.disk_total_mb, agent.alloc_dir, &mut attributes);
    let hostname = host::fingerprint(&mut attributes);
    let host_ip = network::fingerprint(config.host_ip, agent.host_ip, address, &mut attributes);
    attributes.insert(
        "kafila.version".to_owned(),
        env!("CARGO_PKG_VERSION").to_owned(),
    );
    attributes.insert("nomad.version".to_owned(), NOMAD_VERSION.to_owned());
    // Source: Nomad's attribute, which the implied constraint of services asks for.
    attributes.insert("nomad.service_discovery".to_owned(), "true".to_owned());
    attributes.insert("unique.advertise.address".to_owned(), address.to_owned());
    for fingerprint in drivers.values().filter(|fingerprint| fingerprint.detected) {
        attributes.extend(fingerprint.attributes.clone());
    }
    attributes.extend(agent.probed.clone());
    attributes.retain(|_, value| !value.is_empty());
    let reserved = ComparableResources {
        cpu_mhz: config.reserved.cpu.saturating_add(cores.reserved_mhz),
        memory_mib: config.reserved.memory_mb,
        disk_mib: config.reserved.disk_mb,
    };
    Node {
        id: agent.node_id,
        secret: agent.secret.to_owned(),
        name: config.name.clone().unwrap_or(hostname),
        datacenter: config.datacenter.clone(),
        node_pool: config.node_pool.clone(),
        node_class: config.node_class.clone(),
        address: address.to_owned(),
        attributes,
        meta: meta::merge(&config.meta, agent.meta),
        drivers: drivers
            .iter()
            .map(|(name, found)| ((*name).to_owned(), info(found)))
            .collect(),
        resources: ComparableResources {
            cpu_mhz,
            memory_mib,
            disk_mib,
        },
        reserved,
        reserved_ports: offers.reserved_ports.clone(),
        min_dynamic_port: config.min_dynamic_port,
        max_dynamic_port: config.max_dynamic_port,
        host_ip: host_ip.to_string(),
        host_networks: offers.host_networks.clone(),
        cores: cores.reservable,
        max_allocs: config.node_max_allocs,
        devices: config.devices.iter().map(Into::into).collect(),
        host_volumes: offers.host_volumes.clone(),
        csi_nodes: agent.plugins.nodes.clone(),
        csi_controllers: agent.plugins.controllers.clone(),
        dials_out: config.dial_out,
        // The servers own the rest.
        computed_class: String::new(),
        status: NodeStatus::Initializing,
        status_description: String::new(),
        eligibility: NodeEligibility::Eligible,
        status_updated_at: Timestamp::NEVER,
        drain: None,
        last_drain: None,
        lacks_evals: false,
        events: Vec::new(),
    }
}

fn info(fingerprint: &Fingerprint) -> DriverInfo {
    DriverInfo {
        detected: fingerprint.detected,
        healthy: fingerprint.healthy,
        description: fingerprint.description.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agent<'a>(
        drivers: &'a BTreeMap<&'static str, Fingerprint>,
        alloc_dir: Option<&'a Path>,
    ) -> Agent<'a> {
        Agent {
            node_id: NodeId::from_random(1),
            secret: "secret",
            address: "http://127.0.0.1:7201",
            host_ip: None,
            alloc_dir,
            drivers,
            probed: const { &BTreeMap::new() },
            plugins: const {
                &Plugins {
                    nodes: BTreeMap::new(),
                    controllers: BTreeMap::new(),
                }
            },
            meta: const { &BTreeMap::new() },
        }
    }

    #[test]
    fn the_attributes_of_every_machine_are_found_on_this_one() {
        let folder = tempfile::tempdir().unwrap();
        let drivers = BTreeMap::from([(
            "mock_driver",
            Fingerprint {
                detected: true,
                healthy: true,
                description: "Healthy".to_owned(),
                attributes: [("driver.mock_driver".to_owned(), "1".to_owned())].into(),
            },
        )]);
        let config = Config {
            node_class: "large".to_owned(),
            ..Config::default()
        };
        let agent = agent(&drivers, Some(folder.path()));
        let node = node(&config, agent, &Offers::default());
        for name in [
            "cpu.arch",
            "cpu.numcores",
            "cpu.reservablecores",
            "cpu.totalcompute",
            "memory.totalbytes",
            "unique.storage.bytestotal",
            "kernel.name",
            "kernel.version",
            "os.signals",
            "unique.hostname",
            "unique.network.ip-address",
            "driver.mock_driver",
        ] {
            assert!(
                node.attributes.contains_key(name),
                "{name}: {:?}",
                node.attributes
            );
        }
        assert_eq!(node.attributes["kernel.name"], "linux");
        assert_eq!(node.attributes["nomad.version"], NOMAD_VERSION);
        assert!(node.resources.cpu_mhz >= 100);
        assert!(node.resources.memory_mib >= 100);
        let cores = node.cores.values().map(|mhz| u64::from(*mhz));
        let together: u64 = cores.sum();
        assert!(together > 0, "{:?}", node.cores);
        assert!(together <= node.resources.cpu_mhz, "{:?}", node.cores);
        assert!(node.resources.disk_mib >= 1);
        assert_eq!(node.node_class, "large");
        assert!(node.host_ip.parse::<std::net::IpAddr>().is_ok());
    }

    #[test]
    fn the_operators_figures_override_those_of_the_machine() {
        let config = Config {
            cpu_total_compute: 4_000,
            memory_total_mb: 8_192,
            disk_total_mb: 50_000,
            name: Some("n1".to_owned()),
            host_ip: Some([10, 0, 0, 9].into()),
            node_max_allocs: 7,
            reservable_cores: "60000".to_owned(),
            ..Config::default()
        };
        let offers = Offers {
            reserved_ports: vec![22],
            ..Offers::default()
        };
        let drivers = BTreeMap::new();
        let node = node(&config, agent(&drivers, None), &offers);
        assert_eq!(node.reserved_ports, [22]);
        assert_eq!(node.resources.cpu_mhz, 4_000);
        assert_eq!(node.attributes["cpu.totalcompute"], "4000");
        assert_eq!(node.resources.memory_mib, 8_192);
        assert_eq!(
            node.attributes["memory.totalbytes"],
            (8_192_u64 << 20).to_string()
        );
        assert_eq!(node.resources.disk_mib, 50_000);
        assert_eq!(node.max_allocs, 7);
        assert_eq!(node.cores.len(), 0, "this machine has no such core");
        assert_eq!(
            (node.name.as_str(), node.host_ip.as_str()),
            ("n1", "10.0.0.9")
        );
    }
}
