//! The host address: tasks' ports are on it unless they name a host network.

use std::net::{IpAddr, Ipv4Addr, UdpSocket};

use crate::attributes::Attributes;
use crate::offers::has_address;

/// An unused address from the documentation range (RFC 5737). Only the route to it is looked up;
/// nothing is sent.
const ROUTE_PROBE: (Ipv4Addr, u16) = (Ipv4Addr::new(192, 0, 2, 1), 9);

/// Returns the operator's address, else the `present` one while the machine has it, else the source
/// address of the default route, else loopback.
pub(crate) fn fingerprint(
    configured: Option<IpAddr>,
    present: Option<IpAddr>,
    attributes: &mut Attributes,
) -> IpAddr {
    let address = configured.unwrap_or_else(|| choose(present, has_address, default_route));
    attributes.insert("unique.network.ip-address".to_owned(), address.to_string());
    address
}

/// Keeps the present address while the machine has it: a change replaces the services of the node, and
/// the default route may only have moved to another interface for a while.
fn choose(
    present: Option<IpAddr>,
    has_address: impl Fn(IpAddr) -> bool,
    default_route: impl Fn() -> Option<IpAddr>,
) -> IpAddr {
    // Loopback stands for a machine without a network.
    let kept = present.filter(|address| !address.is_loopback() && has_address(*address));
    let address = kept.or_else(default_route);
    address.unwrap_or(Ipv4Addr::LOCALHOST.into())
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
        for (present, machine, route, want) in [
            (None, vec![one], Some(one), one),
            (Some(one), vec![one, other], Some(other), one),
            (Some(one), vec![one, other], None, one),
            (Some(one), vec![other], Some(other), other),
            (Some(one), vec![], None, LOCALHOST),
            (Some(LOCALHOST), vec![LOCALHOST, one], Some(one), one),
            (None, vec![], None, LOCALHOST),
        ] {
            let has_address = |address| machine.contains(&address);
            let found = choose(present, has_address, || route);
            assert_eq!(found, want, "{present:?} {machine:?} {route:?}");
        }
    }
}
