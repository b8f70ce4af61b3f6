//! Network interfaces of the node, as `sockaddr` sees them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// One address of a network interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    pub name: String,
    pub address: IpAddr,
    /// The default route of the address's family leaves through the interface.
    pub is_default: bool,
}

impl Interface {
    /// An address of a private network that routers forward (RFC 6890).
    pub(crate) fn is_private(&self) -> bool {
        match self.address {
            IpAddr::V4(address) => {
                address.is_private()
                    || in_v4(address, Ipv4Addr::new(100, 64, 0, 0), 10)
                    || in_v4(address, Ipv4Addr::new(198, 18, 0, 0), 15)
            }
            IpAddr::V6(address) => address.is_unique_local(),
        }
    }

    /// An address without a special purpose (RFC 6890).
    pub(crate) fn is_public(&self) -> bool {
        let special = match self.address {
            IpAddr::V4(address) => {
                let [first, second, third, _] = address.octets();
                first == 0
                    || first >= 240
                    || address.is_loopback()
                    || address.is_link_local()
                    || address.is_multicast()
                    || address.is_documentation()
                    || (first, second, third) == (192, 0, 0)
                    || (first, second, third) == (192, 88, 99)
            }
            IpAddr::V6(address) => {
                address.is_loopback()
                    || address.is_unspecified()
                    || address.is_unicast_link_local()
                    || address.is_multicast()
                    || in_v6(address, Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32)
            }
        };
        !special && !self.is_private()
    }

    /// Routers forward packets to the address.
    pub(crate) fn is_forwardable(&self) -> bool {
        !self.address.is_loopback()
            && match self.address {
                IpAddr::V4(address) => !address.is_link_local(),
                IpAddr::V6(address) => !address.is_unicast_link_local(),
            }
    }
}

fn in_v4(address: Ipv4Addr, network: Ipv4Addr, length: u32) -> bool {
    (address.to_bits() ^ network.to_bits()).leading_zeros() >= length
}

fn in_v6(address: Ipv6Addr, network: Ipv6Addr, length: u32) -> bool {
    (address.to_bits() ^ network.to_bits()).leading_zeros() >= length
}
