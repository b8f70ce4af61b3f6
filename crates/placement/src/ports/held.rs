//! Held ports of a node, with those on addresses that the node no longer has.

use model::Node;
use state::{AddressPorts, PortUse};

/// The ports that allocations of a node hold.
///
/// A node that has got other addresses may still run allocations that were placed with the earlier
/// ones. Their tasks may listen on every address, and mapped ports do so by default. So these ports
/// count on each address of the node until the allocations end.
pub(super) struct HeldPorts<'a> {
    ports: &'a PortUse,
    /// The ports on addresses that the node no longer has; nearly always empty.
    elsewhere: Vec<&'a AddressPorts>,
}

impl<'a> HeldPorts<'a> {
    pub(super) fn new(node: &Node, ports: &'a PortUse) -> Self {
        let elsewhere = ports
            .addresses()
            .filter(|(address, _)| !node.has_address(address))
            .map(|(_, ports)| ports)
            .collect();
        Self { ports, elsewhere }
    }

    /// Returns the ports that are held on `address` itself.
    pub(super) fn on(&self, address: &str) -> Option<&'a AddressPorts> {
        self.ports.on(address)
    }

    pub(super) fn holds(&self, address: &str, port: u16) -> bool {
        self.ports.holds(address, port) || self.elsewhere.iter().any(|ports| ports.holds(port))
    }
}
