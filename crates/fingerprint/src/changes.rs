//! The parts of a node's record that differ between two fingerprints.

use model::Node;

/// Returns the names of the parts that differ, as users know them.
pub fn changes(old: &Node, new: &Node) -> Vec<&'static str> {
    let parts = [
        ("address", old.address != new.address),
        ("attributes", old.attributes != new.attributes),
        ("cores", old.cores != new.cores),
        ("devices", old.devices != new.devices),
        ("dial_out", old.dials_out != new.dials_out),
        ("drivers", old.drivers != new.drivers),
        ("host_ip", old.host_ip != new.host_ip),
        ("host_networks", old.host_networks != new.host_networks),
        ("host_volumes", old.host_volumes != new.host_volumes),
        ("meta", old.meta != new.meta),
        (
            "plugins",
            old.csi_nodes != new.csi_nodes || old.csi_controllers != new.csi_controllers,
        ),
        ("reserved", old.reserved != new.reserved),
        ("resources", old.resources != new.resources),
    ];
    let changed: Vec<&'static str> = parts
        .into_iter()
        .filter_map(|(name, differs)| differs.then_some(name))
        .collect();
    // No change goes unnoticed for lack of a row above.
    if changed.is_empty() && old != new {
        return vec!["others"];
    }
    changed
}

#[cfg(test)]
mod tests {
    use test_kit::builders;

    use super::*;

    #[test]
    fn changed_parts_are_named_and_none_goes_unnoticed() {
        let old = builders::node(1);
        assert_eq!(changes(&old, &old), [""; 0]);
        let mut new = old.clone();
        new.resources.memory_mib += 1;
        new.meta.insert("rack".to_owned(), "r1".to_owned());
        assert_eq!(changes(&old, &new), ["meta", "resources"]);
        let mut new = old.clone();
        new.max_allocs += 1;
        assert_eq!(changes(&old, &new), ["others"]);
    }
}
