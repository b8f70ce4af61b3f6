//! Ports: what a group asks for, and which ones of a node it gets.

use model::{AllocatedPort, Node, TaskGroup};

use crate::fit::Exhausted;

/// How many ports are drawn at random before the range is searched in order.
/// Source: Nomad's public behaviour.
const RANDOM_TRIES: u32 = 20;

/// One port that a group asks for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PortAsk {
    pub label: String,
    /// This very port; `None`: any of the node's dynamic range.
    pub static_port: Option<u16>,
    /// The port inside the task's network; `None`: the same as on the host.
    pub to: Option<u16>,
}

impl PortAsk {
    /// Returns what `group`'s first network asks for: nodes know no other.
    pub fn of_group(group: &TaskGroup) -> Vec<Self> {
        let ports = group.networks.first().map(|network| &network.ports);
        ports
            .into_iter()
            .flatten()
            .map(|port| Self {
                label: port.label.clone(),
                static_port: port.static_port,
                to: port.to,
            })
            .collect()
    }
}

/// Asks whether every static port of `asks` is free on `node`, whose allocations hold what `holds`
/// says.
///
/// # Errors
/// The first that is not.
pub fn check_static(
    node: &Node,
    holds: impl Fn(u16) -> bool,
    asks: &[PortAsk],
) -> Result<(), Exhausted> {
    for ask in asks {
        let Some(port) = ask.static_port else {
            continue;
        };
        if holds(port) || node.reserved_ports.contains(&port) {
            return Err(Exhausted::PortCollision {
                label: ask.label.clone(),
                port,
            });
        }
    }
    Ok(())
}

/// Gives each of `asks` a port of `node` that is free beside those for which `holds` is true.
///
/// `draw(n)` returns a random number below `n`; which dynamic port is chosen is random so that a
/// port just given up is not given out again at once.
///
/// # Errors
/// A static port that is taken, or a dynamic range that is used up.
pub fn assign_ports(
    node: &Node,
    holds: impl Fn(u16) -> bool,
    asks: &[PortAsk],
    mut draw: impl FnMut(u32) -> u32,
) -> Result<Vec<AllocatedPort>, Exhausted> {
    check_static(node, &holds, asks)?;
    let mut taken: Vec<u16> = asks.iter().filter_map(|ask| ask.static_port).collect();
    let mut assigned = Vec::with_capacity(asks.len());
    for ask in asks {
        let value = match ask.static_port {
            Some(port) => port,
            None => {
                let port = pick_dynamic(node, &holds, &taken, &mut draw)?;
                taken.push(port);
                port
            }
        };
        assigned.push(AllocatedPort {
            label: ask.label.clone(),
            value,
            to: ask.to.unwrap_or(value),
            host_ip: node.host_ip.clone(),
        });
    }
    Ok(assigned)
}

fn pick_dynamic(
    node: &Node,
    holds: impl Fn(u16) -> bool,
    taken: &[u16],
    draw: &mut impl FnMut(u32) -> u32,
) -> Result<u16, Exhausted> {
    let (min, max) = (node.min_dynamic_port, node.max_dynamic_port);
    if min > max {
        return Err(Exhausted::DynamicPorts);
    }
    let size = u32::from(max - min) + 1;
    let is_free =
        |port: u16| !holds(port) && !taken.contains(&port) && !node.reserved_ports.contains(&port);
    let port_at = |offset: u32| {
        min + u16::try_from(offset % size).expect("an offset into a range of ports is a u16")
    };
    for _ in 0..RANDOM_TRIES {
        let port = port_at(draw(size));
        if is_free(port) {
            return Ok(port);
        }
    }
    let start = draw(size);
    (0..size)
        .map(|step| port_at(start + step))
        .find(|port| is_free(*port))
        .ok_or(Exhausted::DynamicPorts)
}

#[cfg(test)]
mod tests {
    use test_kit::builders;

    use super::*;

    /// No port is held.
    const NOTHING: fn(u16) -> bool = |_| false;

    fn ask(label: &str, static_port: Option<u16>, to: Option<u16>) -> PortAsk {
        PortAsk {
            label: label.into(),
            static_port,
            to,
        }
    }

    fn narrow(min: u16, max: u16) -> Node {
        let mut node = builders::node(1);
        node.min_dynamic_port = min;
        node.max_dynamic_port = max;
        node
    }

    fn values(ports: &[AllocatedPort]) -> Vec<(u16, u16)> {
        ports.iter().map(|port| (port.value, port.to)).collect()
    }

    #[test]
    fn scenario_116_a_static_port_is_taken_or_collides() {
        let node = builders::node(1);
        let asks = [ask("http", Some(8_080), Some(80))];
        let assigned = assign_ports(&node, NOTHING, &asks, |_| 0).unwrap();
        assert_eq!(values(&assigned), [(8_080, 80)]);
        let error = assign_ports(&node, |port| port == 8_080, &asks, |_| 0).unwrap_err();
        assert_eq!(
            error.to_string(),
            "network: reserved port collision http=8080"
        );
    }

    #[test]
    fn scenario_117_every_port_of_the_range_is_found_and_then_none() {
        let node = narrow(20_000, 20_001);
        let asks = [ask("a", None, None), ask("b", None, Some(80))];
        // The draw always says the same, so the second port comes from the search in order.
        let assigned = assign_ports(&node, NOTHING, &asks, |_| 0).unwrap();
        assert_eq!(values(&assigned), [(20_000, 20_000), (20_001, 80)]);
        let three = [asks[0].clone(), asks[1].clone(), ask("c", None, None)];
        let error = assign_ports(&node, NOTHING, &three, |_| 1).unwrap_err();
        assert_eq!(error.to_string(), "network: dynamic port selection failed");
    }

    #[test]
    fn a_dynamic_port_avoids_the_static_ones_of_the_same_ask_and_the_reserved() {
        let mut node = narrow(20_000, 20_002);
        node.reserved_ports.push(20_001);
        let asks = [ask("any", None, None), ask("fixed", Some(20_000), None)];
        let assigned = assign_ports(&node, NOTHING, &asks, |_| 0).unwrap();
        assert_eq!(values(&assigned), [(20_002, 20_002), (20_000, 20_000)]);
    }

    #[test]
    fn a_range_upside_down_has_no_ports() {
        let node = narrow(5, 4);
        let asks = [ask("a", None, None)];
        assert_eq!(
            assign_ports(&node, NOTHING, &asks, |_| 0),
            Err(Exhausted::DynamicPorts)
        );
    }
}
