//! Host addresses of placed ports: allocations whose node has lost the address of a port.
//!
//! An allocation keeps the host addresses that it was placed with. A node that restarts may come back
//! with others; then tasks cannot listen on the old one, and registered services name it.
//! Ours: in Nomad the allocation stays as it is.

use std::net::IpAddr;

use model::{AllocatedPort, Node, NodeStatus, TaskGroup};
use state::{AllocView, Snapshot};

use crate::ports::PortAsk;

/// Returns a port of `view` that would get another host address on its node now, because the node no
/// longer has the present one; `None`: there is none, or the node is not ready.
pub fn lost_port<'a>(snapshot: &Snapshot, view: &'a AllocView) -> Option<&'a AllocatedPort> {
    let alloc = &view.alloc;
    let node = &snapshot.node(alloc.node_id)?.value;
    let is_lost = |port: &&AllocatedPort| is_lost(node, port);
    if node.status != NodeStatus::Ready || !alloc.resources.ports.iter().any(|port| is_lost(&port))
    {
        return None;
    }
    let job = snapshot.job_version(&alloc.job_key(), alloc.job_version)?;
    let group = job.value.task_group(&alloc.task_group)?;
    let mut lost = alloc.resources.ports.iter().filter(is_lost);
    lost.find(|port| has_other_address(node, group, port))
}

/// Checks whether `node` has the host addresses of a new allocation's `ports`: for the plan-applier, as
/// the node may have got others since the plan was made.
///
/// # Errors
/// The first port whose address it has not.
pub fn check_given(node: &Node, ports: &[AllocatedPort]) -> Result<(), String> {
    match ports.iter().find(|port| is_lost(node, port)) {
        None => Ok(()),
        Some(port) => Err(format!(
            "node no longer has the address {} of port {:?}",
            port.host_ip, port.label
        )),
    }
}

/// Tells whether the host address of `port` is none of the node's.
fn is_lost(node: &Node, port: &AllocatedPort) -> bool {
    !port.host_ip.is_empty() && !node.has_address(&port.host_ip)
}

/// Tells whether `node` has an address in the host network of `port`.
///
/// A loopback address does not count: a node without a network reports it in place of its own, and
/// tasks that listen on all addresses go on until the network is back.
fn has_other_address(node: &Node, group: &TaskGroup, port: &AllocatedPort) -> bool {
    let asks = PortAsk::of_group(group);
    let mut asks = asks.iter();
    let ask = asks.find(|ask| ask.label == port.label && ask.task == port.task);
    let addresses = ask.map_or(&[][..], |ask| ask.addresses_on(node));
    let mut addresses = addresses.iter().map(|address| address.parse::<IpAddr>());
    addresses.any(|address| address.is_ok_and(|address| !address.is_loopback()))
}

#[cfg(test)]
mod tests;
