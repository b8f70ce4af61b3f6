//! The host address: tasks' ports are on it unless they name a host network.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};

use crate::attributes::Attributes;
use crate::offers::has_address;

/// An unused address from the documentation range (RFC 5737). Only the route to it is looked up;
/// nothing is sent.
const ROUTE_PROBE: (Ipv4Addr, u16) = (Ipv4Addr::new(192, 0, 2, 1), 9);

/// Returns the operator's address, else the `present` one while the machine has it, else the source
/// address of the default route, else that of the agent's own `address`, else loopback.
pub(crate) fn fingerprint(
    configured: Option<IpAddr>,
    present: Option<IpAddr>,
    address: &str,
    attributes: &mut Attributes,
) -> IpAddr {
    let choose = || choose(present, ip_of(address), has_address, default_route);
    let address = configured.unwrap_or_else(choose);
    attributes.insert("unique.network.ip-address".to_owned(), address.to_string());
    address
}

/// Keeps the present address while the machine has it: a change replaces the services of the node, and
/// the default route may only have moved to another interface for a while.
fn choose(
    present: Option<IpAddr>,
    own: Option<IpAddr>,
    has_address: impl Fn(IpAddr) -> bool,
    default_route: impl Fn() -> Option<IpAddr>,
) -> IpAddr {
    // Loopback stands for a machine without a network.
    let is_usable = |address: &IpAddr| !address.is_loopback() && has_address(*address);
    let kept = present.filter(is_usable);
    let address = kept
        .or_else(default_route)
        // Behind NAT the agent's address is one of another machine.
        .or_else(|| own.filter(is_usable));
    address.unwrap_or(Ipv4Addr::LOCALHOST.into())
}

/// Returns the IP address in an address such as `https://10.0.0.2:4647`; `None`: it has a host name.
fn ip_of(address: &str) -> Option<IpAddr> {
    let (_, authority) = address.split_once("://")?;
    Some(authority.parse::<SocketAddr>().ok()?.ip())
}

fn default_route() -> Option<IpAddr> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).ok()?;
    socket.connect(ROUTE_PROBE).ok()?;
    Some(socket.local_addr().ok()?.ip())
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOCALHOST: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

    #[test]
    fn the_present_address_stays_while_the_machine_has_it() {
        let (one, other) = (IpAddr::from([10, 0, 0, 1]), IpAddr::from([10, 0, 0, 2]));
        for (present, own, machine, route, want) in [
            (None, None, vec![one], Some(one), one),
            (Some(one), None, vec![one, other], Some(other), one),
            (Some(one), None, vec![one, other], None, one),
            (Some(one), None, vec![other], Some(other), other),
            (Some(one), None, vec![], None, LOCALHOST),
            (Some(LOCALHOST), None, vec![LOCALHOST, one], Some(one), one),
            (None, None, vec![], None, LOCALHOST),
            // Without a default route, the agent's own address if the machine has it.
            (None, Some(one), vec![one], None, one),
            (None, Some(one), vec![one, other], Some(other), other),
            (Some(other), Some(one), vec![one, other], None, other),
            (None, Some(one), vec![other], None, LOCALHOST),
            (None, Some(LOCALHOST), vec![LOCALHOST], None, LOCALHOST),
        ] {
            let has_address = |address| machine.contains(&address);
            let found = choose(present, own, has_address, || route);
            assert_eq!(found, want, "{present:?} {own:?} {machine:?} {route:?}");
        }
    }

    #[test]
    fn the_own_address_is_read_without_its_scheme_and_port() {
        let six = Some(IpAddr::V6(std::net::Ipv6Addr::LOCALHOST));
        for (address, expected) in [
            ("https://10.0.0.2:4647", Some(IpAddr::from([10, 0, 0, 2]))),
            ("http://[::1]:4647", six),
            ("https://n1.example:4647", None),
            ("", None),
        ] {
            assert_eq!(ip_of(address), expected, "{address}");
        }
    }
}
