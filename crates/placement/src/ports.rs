//! Ports: the requests of a group and its tasks, and their assignment on a node.
//!
//! A port is on one address of the node. A job selects addresses by the alias of a host network,
//! which may have several: the first with a free port is taken.

mod free;
mod held;
#[cfg(test)]
mod tests;

use std::borrow::Cow;

use model::job::{Network, Port};
use model::node::DEFAULT_HOST_NETWORK;
use model::{AllocatedPort, Node, TaskGroup};
use state::PortUse;

use crate::exhausted::Exhausted;
use crate::ports::held::HeldPorts;
use crate::target::Target;

/// The number of random draws before all free ports are counted. Source: Nomad's public behaviour.
const RANDOM_TRIES: u32 = 20;

/// A port request of a group, or of one of its tasks.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PortAsk {
    pub label: String,
    /// A static port; `None`: a dynamic one.
    pub static_port: Option<u16>,
    /// The port inside the task's network; `None`: the same as on the host.
    pub to: Option<u16>,
    /// The alias of the host network in the job.
    host_network: String,
    /// The host network of the alias on a node.
    alias: Target,
    /// A static port may collide with others.
    pub ignore_collision: bool,
    /// The task that asks; empty: the group.
    pub task: String,
}

impl PortAsk {
    /// Returns the port requests of `group` and then of its tasks, each of its first network; nodes
    /// support only one.
    pub fn of_group(group: &TaskGroup) -> Vec<Self> {
        let of_tasks = group.tasks.iter();
        let of_tasks = of_tasks.map(|task| (task.name.as_str(), &task.resources.networks));
        let asks = |(task, networks): (&str, &Vec<Network>)| {
            let ports = networks.first().map(|network| network.ports.as_slice());
            let ports = ports.unwrap_or_default().iter();
            ports.map(|port| Self::new(port, task)).collect::<Vec<_>>()
        };
        let networks = [("", &group.networks)].into_iter().chain(of_tasks);
        networks.flat_map(asks).collect()
    }

    fn new(port: &Port, task: &str) -> Self {
        let host_network = match port.host_network.as_str() {
            "" => DEFAULT_HOST_NETWORK,
            named => named,
        };
        Self {
            label: port.label.clone(),
            static_port: port.static_port,
            to: port.to,
            host_network: host_network.to_owned(),
            alias: Target::parse(host_network),
            ignore_collision: port.ignore_collision,
            task: task.to_owned(),
        }
    }

    /// Tells whether every node has the host network.
    pub(crate) fn is_on_default(&self) -> bool {
        self.host_network == DEFAULT_HOST_NETWORK
    }

    /// Checks whether `node` has the host network.
    ///
    /// # Errors
    /// The reason of a node that has not.
    pub(crate) fn check_network(&self, node: &Node) -> Result<(), String> {
        let label = &self.label;
        let Some(alias) = self.alias.resolve(node) else {
            let template = &self.host_network;
            return Err(format!(
                "invalid host network {template:?} template for port {label:?}"
            ));
        };
        match node.addresses(&alias) {
            Some(_) => Ok(()),
            None => Err(format!("missing host network {alias:?} for port {label:?}")),
        }
    }

    /// Returns the possible addresses of the port on `node`; empty: it has none of the host
    /// network.
    pub fn addresses_on<'a>(&'a self, node: &'a Node) -> &'a [String] {
        self.addresses(node).map_or(&[], |(_, addresses)| addresses)
    }

    /// Returns the alias and the possible addresses of the port.
    fn addresses<'a>(&'a self, node: &'a Node) -> Result<(Cow<'a, str>, &'a [String]), Exhausted> {
        let alias = self.alias.resolve(node);
        let alias = alias.unwrap_or(Cow::Borrowed(self.host_network.as_str()));
        match node.addresses(&alias) {
            Some(addresses) if !addresses.is_empty() => Ok((alias, addresses)),
            _ => Err(Exhausted::NoAddresses {
                network: alias.into_owned(),
            }),
        }
    }
}

/// Checks whether every static port of `asks` is free on `node`, whose allocations hold `held`.
///
/// # Errors
/// The first one that is not.
pub fn check_static(node: &Node, held: &PortUse, asks: &[PortAsk]) -> Result<(), Exhausted> {
    let held = HeldPorts::new(node, held);
    let mut given = Vec::new();
    for (position, ask) in asks.iter().enumerate() {
        if let Some(port) = ask.static_port {
            let address = static_address(node, &held, &given, ask, port)?;
            // Ports in the same group matter only if they are equal; those of most groups all
            // differ.
            let mut later = asks[position + 1..].iter();
            if later.any(|later| later.static_port == Some(port)) {
                given.push((address, port));
            }
        }
    }
    Ok(())
}

/// Returns the first address on which a static port is free, beside the ports `given` to the same
/// group: the same port under another alias may be on the same address.
fn static_address<'a>(
    node: &'a Node,
    held: &HeldPorts<'_>,
    given: &[(&str, u16)],
    ask: &'a PortAsk,
    port: u16,
) -> Result<&'a str, Exhausted> {
    let is_free = |address: &str| {
        !held.holds(address, port)
            && !node.is_port_reserved(address, port)
            && !given.contains(&(address, port))
    };
    let (_, addresses) = ask.addresses(node)?;
    let mut addresses = addresses.iter().map(String::as_str);
    addresses
        .find(|address| ask.ignore_collision || is_free(address))
        .ok_or_else(|| Exhausted::PortCollision {
            label: ask.label.clone(),
            port,
        })
}

/// Assigns each of `asks` a free port of `node`.
///
/// `draw(n)` returns a random number below `n`; dynamic ports are random so that a released port is
/// not assigned again at once.
///
/// # Errors
/// A static port that is held, a host network without addresses, or an exhausted dynamic range.
pub fn assign_ports(
    node: &Node,
    held: &PortUse,
    asks: &[PortAsk],
    mut draw: impl FnMut(u32) -> u32,
) -> Result<Vec<AllocatedPort>, Exhausted> {
    let held = HeldPorts::new(node, held);
    let mut picked = Vec::with_capacity(asks.len());
    let mut given = Vec::new();
    for (position, ask) in asks.iter().enumerate() {
        let Some(port) = ask.static_port else {
            continue;
        };
        let (alias, _) = ask.addresses(node)?;
        let address = static_address(node, &held, &given, ask, port)?;
        given.push((address, port));
        picked.push(AssignedPort {
            position,
            port,
            address,
            alias,
            is_dynamic: false,
        });
    }
    for (position, ask) in asks.iter().enumerate() {
        if ask.static_port.is_some() {
            continue;
        }
        let (alias, addresses) = ask.addresses(node)?;
        let (address, port) = pick_dynamic(node, &held, (&alias, addresses), &picked, &mut draw)?;
        picked.push(AssignedPort {
            position,
            port,
            address,
            alias,
            is_dynamic: true,
        });
    }
    picked.sort_by_key(|picked| picked.position);
    let assigned = picked
        .into_iter()
        .zip(asks)
        .map(|(picked, ask)| AllocatedPort {
            label: ask.label.clone(),
            value: picked.port,
            to: ask.to.unwrap_or(picked.port),
            host_ip: picked.address.to_owned(),
            ignore_collision: ask.ignore_collision && ask.static_port.is_some(),
            task: ask.task.clone(),
        });
    Ok(assigned.collect())
}

/// A port assigned by this offer.
struct AssignedPort<'a> {
    /// The position of its request.
    position: usize,
    port: u16,
    address: &'a str,
    alias: Cow<'a, str>,
    is_dynamic: bool,
}

impl AssignedPort<'_> {
    /// Tells whether a further dynamic port on `address` of the host network `alias` must have
    /// another number.
    ///
    /// The dynamic ports of one offer all have different numbers, on whatever addresses. The number
    /// of a static port is free for a dynamic one on another address of another host network.
    fn conflicts_with(&self, alias: &str, address: &str) -> bool {
        self.is_dynamic || self.alias == alias || self.address == address
    }
}

fn pick_dynamic<'a>(
    node: &Node,
    held: &HeldPorts<'_>,
    (alias, addresses): (&str, &'a [String]),
    picked: &[AssignedPort<'_>],
    draw: &mut impl FnMut(u32) -> u32,
) -> Result<(&'a str, u16), Exhausted> {
    let (min, max) = (node.min_dynamic_port, node.max_dynamic_port);
    if min > max {
        return Err(Exhausted::DynamicPorts);
    }
    let size = u32::from(max - min) + 1;
    for address in addresses {
        let own = || {
            let own = picked
                .iter()
                .filter(|own| own.conflicts_with(alias, address));
            own.map(|own| own.port)
        };
        let is_free = |port: u16| {
            !held.holds(address, port)
                && !node.is_port_reserved(address, port)
                && own().all(|other| other != port)
        };
        for _ in 0..RANDOM_TRIES {
            let offset = u16::try_from(draw(size) % size).expect("within a range of ports");
            let port = min + offset;
            if is_free(port) {
                return Ok((address, port));
            }
        }
        if let Some(port) = free::pick(min..=max, held.on(address), is_free, draw) {
            return Ok((address, port));
        }
    }
    Err(Exhausted::DynamicPorts)
}

/// Tells whether an allocation of `node` holds `port` for a new one on `address`: on that address, or
/// on one that the node no longer has.
pub fn is_held(node: &Node, held: &PortUse, address: &str, port: u16) -> bool {
    HeldPorts::new(node, held).holds(address, port)
}

/// Checks whether an allocation may hold `ports` beside `held`: for the plan-applier, which did not
/// choose them.
///
/// # Errors
/// The first one that is held, reserved or listed twice.
pub fn check_given(node: &Node, held: &PortUse, ports: &[AllocatedPort]) -> Result<(), Exhausted> {
    let held = HeldPorts::new(node, held);
    for (position, port) in ports.iter().enumerate() {
        if port.ignore_collision {
            continue;
        }
        let (address, value) = (port.host_ip.as_str(), port.value);
        let mut earlier = ports[..position].iter();
        if held.holds(address, value)
            || node.is_port_reserved(address, value)
            || earlier.any(|other| other.value == value && other.host_ip == address)
        {
            return Err(Exhausted::PortCollision {
                label: port.label.clone(),
                port: value,
            });
        }
    }
    Ok(())
}
