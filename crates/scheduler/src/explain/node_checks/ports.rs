//! Port checks of one node: collisions with their holders, and missing dynamic ports.

use model::{AllocatedPort, Node};
use placement::ports::{check_static, is_held};
use placement::{Exhausted, assign_ports};
use state::{AllocView, PortUse};

use crate::explain::blocker::{Holder, PlacementBlocker};
use crate::explain::node_checks::NodeChecks;

impl NodeChecks<'_, '_> {
    /// Checks static and dynamic ports.
    pub(super) fn ports(&self, position: usize, node: &Node, found: &mut Vec<PlacementBlocker>) {
        let held = self.search.cluster.ports(position);
        let mut is_each_free = true;
        for ask in &self.requirements.ports {
            let Some(port) = ask.static_port else {
                continue;
            };
            let answer = check_static(node, held, std::slice::from_ref(ask));
            let Err(Exhausted::PortCollision { .. }) = answer else {
                continue;
            };
            is_each_free = false;
            // The holder may release the port on one of these.
            let mut addresses = ask.addresses_on(node).iter();
            let held = addresses.find(|address| !node.is_port_reserved(address, port));
            let holder = held.and_then(|address| self.holder(node, address, port));
            found.push(PlacementBlocker::StaticPort {
                label: ask.label.clone(),
                port,
                holder,
            });
        }
        // Each port has a free address, but together they have too few.
        let empty = PortUse::default();
        let together = check_static(node, &empty, &self.requirements.ports);
        if let (true, Err(Exhausted::PortCollision { label, port })) = (is_each_free, together) {
            found.push(PlacementBlocker::SamePort { label, port });
        }
        if let Some(missing) = self.missing_dynamic_ports(position, node) {
            found.push(PlacementBlocker::DynamicPorts { missing });
        }
    }

    fn holder(&self, node: &Node, address: &str, port: u16) -> Option<Holder> {
        let is_on = |held: &str| held == address || !node.has_address(held);
        let holds = |view: &&AllocView| {
            let ports = &view.alloc.resources.ports;
            !view.is_terminal()
                && !self.gone.contains(&view.alloc.id)
                && ports
                    .iter()
                    .any(|held| held.value == port && is_on(&held.host_ip))
        };
        let holder = self.snapshot.allocs_by_node(node.id).find(holds);
        let stored = holder.map(|view| Holder {
            alloc_id: view.alloc.id,
            job_id: view.alloc.job_id.to_string(),
            is_own: view.alloc.job_key() == self.key,
        });
        let planned = (node.id, address.to_owned(), port);
        stored.or_else(|| self.planned_ports.get(&planned).cloned())
    }

    fn missing_dynamic_ports(&self, position: usize, node: &Node) -> Option<u32> {
        let asks = &self.dynamic_ports;
        if asks.is_empty() {
            return None;
        }
        // In order instead of at random: the answer has to be deterministic.
        let all = &self.requirements.ports;
        if assign_ports(node, self.search.cluster.ports(position), all, |_| 0).is_ok() {
            return None;
        }
        let mut held = self.search.cluster.ports(position).clone();
        for ask in &self.requirements.ports {
            let Some(value) = ask.static_port else {
                continue;
            };
            let fixed = ask.addresses_on(node).iter().map(|address| AllocatedPort {
                value,
                host_ip: address.clone(),
                ..AllocatedPort::default()
            });
            held.add(&fixed.collect::<Vec<_>>());
        }
        let Err(Exhausted::DynamicPorts) = assign_ports(node, &held, asks, |_| 0) else {
            return None;
        };
        let addresses: Vec<_> = asks.iter().flat_map(|ask| ask.addresses_on(node)).collect();
        let is_free = |port: &u16| {
            let mut addresses = addresses.iter();
            addresses.any(|address| {
                !is_held(node, &held, address, *port) && !node.is_port_reserved(address, *port)
            })
        };
        let range = node.min_dynamic_port..=node.max_dynamic_port;
        let free = range.filter(is_free);
        let missing = asks.len().saturating_sub(free.count()).max(1);
        u32::try_from(missing).ok()
    }
}
