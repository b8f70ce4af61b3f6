//! Host addresses of ports, as of the node's record.

use model::{AllocatedPort, Allocation, JobType, Node, NodeEligibility, NodeStatus};
use state::{AllocView, Snapshot};

/// Returns the ports of `alloc` on addresses that `node` does not have.
pub(crate) fn off_node<'a>(
    node: &Node,
    alloc: &'a Allocation,
) -> impl Iterator<Item = &'a AllocatedPort> {
    let networks = node.host_networks.values();
    let mut known: Vec<String> = networks
        .flat_map(|network| network.addresses.clone())
        .collect();
    known.push(node.host_ip.clone());
    let ports = alloc.resources.ports.iter();
    ports.filter(move |port| !port.host_ip.is_empty() && !known.contains(&port.host_ip))
}

/// Tells whether a port of `view` is on an address that its node does not have.
pub(crate) fn is_off_node(snapshot: &Snapshot, view: &AllocView) -> bool {
    let node = snapshot.node(view.alloc.node_id);
    node.is_some_and(|node| off_node(&node.value, &view.alloc).next().is_some())
}

/// Returns why a new allocation must not have its ports: an address is not its node's, or an allocation
/// that was placed with an address that the node has lost holds the port.
pub(crate) fn wrong_port(snapshot: &Snapshot, node: &Node, alloc: &Allocation) -> Option<String> {
    if let Some(port) = off_node(node, alloc).next() {
        return Some(format!("{} is not an address of {}", port.host_ip, node.id));
    }
    let ports = &alloc.resources.ports;
    let own = |port: &AllocatedPort| {
        let mut ports = ports.iter().filter(|own| !own.ignore_collision);
        ports.any(|own| own.value == port.value)
    };
    let mut live = snapshot.allocs_by_node(node.id);
    live.find_map(|view| {
        let is_other = view.alloc.id != alloc.id && !view.is_terminal();
        let mut ports = off_node(node, &view.alloc);
        let held = ports.find(|port| is_other && !port.ignore_collision && own(port))?;
        let (port, holder) = (held.value, view.alloc.id);
        Some(format!(
            "port {port} is held by {holder} on {}",
            held.host_ip
        ))
    })
}

/// Returns the live allocations of services and system jobs with a port on an address that their node
/// does not have.
///
/// The ones of system jobs on ineligible nodes stay: they could not be placed there again.
pub(crate) fn lost(snapshot: &Snapshot) -> Vec<String> {
    let mut found = Vec::new();
    for view in snapshot.allocs().filter(|view| !view.is_terminal()) {
        let alloc = &view.alloc;
        let job = snapshot.job_version(&alloc.job_key(), alloc.job_version);
        let job_type = job.map(|job| job.value.job_type);
        let Some(node) = snapshot.node(alloc.node_id).map(|node| &node.value) else {
            continue;
        };
        let is_replaced = match job_type {
            Some(JobType::Service) => true,
            Some(JobType::System) => node.eligibility == NodeEligibility::Eligible,
            Some(JobType::Batch | JobType::Sysbatch) | None => false,
        };
        if !is_replaced || node.status != NodeStatus::Ready {
            continue;
        }
        for port in off_node(node, alloc) {
            let (id, address) = (alloc.id, &port.host_ip);
            found.push(format!(
                "allocation {id} has port {} on {address}, its node has {}",
                port.label, node.host_ip
            ));
        }
    }
    found
}
