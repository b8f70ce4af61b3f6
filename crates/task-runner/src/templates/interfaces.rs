//! The node's network interfaces and their addresses.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};

use nix::ifaddrs::getifaddrs;
use template::sockaddr::Interface;

/// Unused addresses of the documentation ranges (RFC 5737, RFC 3849). Only the route to them is looked
/// up; nothing is sent.
const PROBES: [(IpAddr, IpAddr); 2] = [
    (
        IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)),
    ),
    (
        IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1)),
    ),
];

/// Lists each address of each interface; empty if the system does not tell.
pub(super) fn list() -> Vec<Interface> {
    let Ok(found) = getifaddrs() else {
        return Vec::new();
    };
    let addresses: Vec<(String, IpAddr)> = found
        .filter_map(|interface| {
            let address = interface.address?;
            let v4 = address
                .as_sockaddr_in()
                .map(|address| IpAddr::V4(address.ip()));
            let v6 = address
                .as_sockaddr_in6()
                .map(|address| IpAddr::V6(address.ip()));
            Some((interface.interface_name, v4.or(v6)?))
        })
        .collect();
    // The interfaces that hold the source address of a default route.
    let defaults: Vec<(String, bool)> = PROBES
        .into_iter()
        .filter_map(|(any, probe)| {
            let source = source_address(any, probe)?;
            let (name, _) = addresses.iter().find(|(_, address)| *address == source)?;
            Some((name.clone(), source.is_ipv6()))
        })
        .collect();
    let interface = |(name, address): (String, IpAddr)| {
        let is_default = defaults.contains(&(name.clone(), address.is_ipv6()));
        Interface {
            name,
            address,
            is_default,
        }
    };
    addresses.into_iter().map(interface).collect()
}

fn source_address(any: IpAddr, probe: IpAddr) -> Option<IpAddr> {
    let socket = UdpSocket::bind((any, 0)).ok()?;
    socket.connect((probe, 9)).ok()?;
    Some(socket.local_addr().ok()?.ip())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_interface_is_listed_and_no_default() {
        let interfaces = list();
        let loopback = interfaces
            .iter()
            .find(|interface| interface.address == IpAddr::V4(Ipv4Addr::LOCALHOST));
        assert!(
            loopback.is_some_and(|interface| !interface.is_default),
            "{interfaces:?}"
        );
    }
}
