//! Computed class of a node: a hash of the facts that constraints can read and nodes can share.
//!
//! Nodes of one class give the same answer to every constraint without `unique.` facts, so it is
//! checked once per class. Amounts, status, driver health and ports are not part of it, and no
//! answer that depends on them is cached by class.

use std::collections::BTreeMap;

use fnv1a::Fnv64;
use model::Node;
use model::node::{NodeDevice, UNIQUE_PREFIX};

/// Returns `v1:` and 16 hexadecimal digits.
///
/// Source: Nomad's public behaviour for the hashed facts: datacenter, class, pool, attributes and
/// meta that are not unique, and devices without their instances.
pub fn computed_class(node: &Node) -> String {
    let mut hash = Fnv64::new()
        .field(&node.datacenter)
        .field(&node.node_class)
        .field(&node.node_pool);
    for (marker, facts) in [("attr", &node.attributes), ("meta", &node.meta)] {
        hash = with_facts(hash.field(marker), facts);
    }
    let mut devices: Vec<_> = node.devices.iter().collect();
    devices.sort_by(|left, right| names(left).cmp(&names(right)));
    for device in devices {
        let named = names(device).into_iter();
        let named = named.fold(hash.field("device"), |hash, name| hash.field(name));
        hash = with_facts(named, &device.attributes);
    }
    format!("v1:{:016x}", hash.finish())
}

fn names(device: &NodeDevice) -> [&str; 3] {
    [&device.vendor, &device.device_type, &device.name]
}

/// Hashes the facts that several nodes may share.
fn with_facts(hash: Fnv64, facts: &BTreeMap<String, String>) -> Fnv64 {
    let shared = facts
        .iter()
        .filter(|(key, _)| !key.starts_with(UNIQUE_PREFIX));
    shared.fold(hash, |hash, (key, value)| hash.field(key).field(value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::tests::node;

    #[test]
    fn unique_and_changing_facts_do_not_change_the_class() {
        let class = computed_class(&node());
        let mut other = node();
        other.name = "n2".into();
        other
            .attributes
            .insert("unique.hostname".into(), "host-2".into());
        other.meta.insert("unique.serial".into(), "77".into());
        other.resources.cpu_mhz *= 2;
        other.drivers.clear();
        other.cores.insert(0, 1_000);
        other.max_allocs = 3;
        assert_eq!(computed_class(&other), class);
    }

    #[test]
    fn facts_that_nodes_share_change_the_class() {
        let class = computed_class(&node());
        let edits: [fn(&mut Node); 7] = [
            |node| node.datacenter = "dc2".into(),
            |node| node.node_class = "small".into(),
            |node| node.node_pool = "gpu".into(),
            |node| drop(node.attributes.insert("cpu.arch".into(), "arm64".into())),
            |node| drop(node.meta.insert("rack".into(), "r2".into())),
            |node| node.devices.push(gpu("8 GiB")),
            // The same words under the other heading.
            |node| {
                let rack = node.meta.remove("rack").unwrap();
                node.attributes.insert("rack".into(), rack);
            },
        ];
        for (position, edit) in edits.iter().enumerate() {
            let mut other = node();
            edit(&mut other);
            assert_ne!(computed_class(&other), class, "edit {position}");
        }
    }

    fn gpu(memory: &str) -> NodeDevice {
        NodeDevice {
            vendor: "nvidia".into(),
            device_type: "gpu".into(),
            name: "1080ti".into(),
            attributes: [("memory".into(), memory.into())].into(),
            ..NodeDevice::default()
        }
    }

    #[test]
    fn classes_differ_by_the_shared_facts_of_devices() {
        let with = |devices: &[NodeDevice]| {
            let mut node = node();
            node.devices = devices.to_vec();
            computed_class(&node)
        };
        let fpga = NodeDevice {
            device_type: "fpga".into(),
            ..gpu("1 GiB")
        };
        let mut own = gpu("8 GiB");
        own.attributes.insert("unique.serial".into(), "7".into());
        own.instances = vec![model::node::DeviceInstance {
            id: "GPU-1".into(),
            healthy: false,
        }];
        own.env = "CUDA".into();
        assert_eq!(with(&[own]), with(&[gpu("8 GiB")]));
        assert_ne!(with(&[gpu("4 GiB")]), with(&[gpu("8 GiB")]));
        assert_eq!(
            with(&[gpu("8 GiB"), fpga.clone()]),
            with(&[fpga, gpu("8 GiB")])
        );
    }

    /// Stored classes are compared with new ones, so the hash is part of the format.
    #[test]
    fn the_hash_never_changes() {
        assert_eq!(computed_class(&node()), "v1:5ff3e394249906b9");
    }
}
