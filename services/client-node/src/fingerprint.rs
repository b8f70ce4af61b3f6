//! What the machine has, in the words of Nomad's attributes.
//!
//! In reading order: [`cpu`], [`cores`], [`memory`], [`disk`], [`host`], [`network`] each look at one
//! thing; [`offers`] is what the operator lets tasks have of it; [`node`] puts the node's record
//! together. What cannot be found out is left out, never guessed,
//! but for a core's speed.

mod cores;
mod cpu;
mod disk;
mod host;
mod memory;
mod network;
mod offers;

use std::collections::BTreeMap;
use std::path::Path;

use model::node::DriverInfo;
use model::{ComparableResources, Node, NodeEligibility, NodeStatus, Timestamp};
use task_drivers::Fingerprint;

use crate::config::Config;
use crate::identity::Identity;

pub(crate) use cores::check as check_cores;
pub(crate) use offers::Offers;

/// Attribute → value, as in `cpu.arch` → `amd64`.
type Attributes = BTreeMap<String, String>;

/// Returns the node's record. `directory` is where allocations' files go, `address` where the
/// node answers, `drivers` what each driver says of itself, `offers` what the operator lets tasks
/// have.
pub(crate) fn node(
    config: &Config,
    identity: &Identity,
    directory: Option<&Path>,
    address: &str,
    drivers: &BTreeMap<&'static str, Fingerprint>,
    offers: &Offers,
) -> Node {
    let mut attributes = Attributes::new();
    let cpu_mhz = cpu::fingerprint(config.cpu_total_compute, &mut attributes);
    let cores = cores::fingerprint(config, cpu_mhz);
    let reservable = cores.reservable.len().to_string();
    attributes.insert("cpu.reservablecores".to_owned(), reservable);
    let memory_mib = memory::fingerprint(config.memory_total_mb, &mut attributes);
    let disk_mib = disk::fingerprint(config.disk_total_mb, directory, &mut attributes);
    let hostname = host::fingerprint(&mut attributes);
    let host_ip = network::fingerprint(config.host_ip, &mut attributes);
    attributes.insert(
        "kafila.version".to_owned(),
        env!("CARGO_PKG_VERSION").to_owned(),
    );
    attributes.insert("unique.advertise.address".to_owned(), address.to_owned());
    for fingerprint in drivers.values().filter(|fingerprint| fingerprint.detected) {
        attributes.extend(fingerprint.attributes.clone());
    }
    attributes.retain(|_, value| !value.is_empty());
    let reserved = ComparableResources {
        cpu_mhz: config.reserved.cpu.saturating_add(cores.reserved_mhz),
        memory_mib: config.reserved.memory_mb,
        disk_mib: config.reserved.disk_mb,
    };
    Node {
        id: identity.node_id,
        secret: identity.secret.clone(),
        name: config.name.clone().unwrap_or(hostname),
        datacenter: config.datacenter.clone(),
        node_pool: config.node_pool.clone(),
        node_class: config.node_class.clone(),
        address: address.to_owned(),
        attributes,
        meta: config.meta.clone(),
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
        // What follows is for the servers to say.
        computed_class: String::new(),
        status: NodeStatus::Initializing,
        status_description: String::new(),
        eligibility: NodeEligibility::Eligible,
        status_updated_at: Timestamp::NEVER,
        drain: None,
        last_drain: None,
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

/// Returns the text of a small file, trimmed; empty when it cannot be read.
fn read(path: impl AsRef<Path>) -> String {
    std::fs::read_to_string(path)
        .map(|text| text.trim().to_owned())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use service_kit::IdSource;

    use super::*;

    #[test]
    fn this_machine_has_what_every_machine_has() {
        let folder = tempfile::tempdir().unwrap();
        let identity = Identity::new(&IdSource::seeded(1));
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
        let address = "http://127.0.0.1:7201";
        let offers = Offers::default();
        let node = node(
            &config,
            &identity,
            Some(folder.path()),
            address,
            &drivers,
            &offers,
        );
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
    fn the_operators_figures_win() {
        let identity = Identity::new(&IdSource::seeded(1));
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
        let address = "http://x";
        let node = node(&config, &identity, None, address, &BTreeMap::new(), &offers);
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
