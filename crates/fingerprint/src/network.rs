//! The host address: tasks' ports are on it unless they name a host network.

use std::net::{IpAddr, Ipv4Addr, UdpSocket};

use crate::attributes::Attributes;

/// An unused address from the documentation range (RFC 5737). Only the route to it is looked up;
/// nothing is sent.
const ROUTE_PROBE: (Ipv4Addr, u16) = (Ipv4Addr::new(192, 0, 2, 1), 9);

/// Returns the operator's address, else the source address of the default route, else loopback.
pub(crate) fn fingerprint(configured: Option<IpAddr>, attributes: &mut Attributes) -> IpAddr {
    let address = configured
        .or_else(default_route)
        .unwrap_or(Ipv4Addr::LOCALHOST.into());
    attributes.insert("unique.network.ip-address".to_owned(), address.to_string());
    address
}

fn default_route() -> Option<IpAddr> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).ok()?;
    socket.connect(ROUTE_PROBE).ok()?;
    Some(socket.local_addr().ok()?.ip())
}
