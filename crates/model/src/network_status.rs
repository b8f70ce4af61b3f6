//! Addresses of an allocation with a network of its own.

use serde::{Deserialize, Serialize};

/// The network of an allocation as its node has set it up.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NetworkStatus {
    /// The interface in the allocation's namespace, as in `eth0`.
    pub interface: String,
    /// IPv4; empty: none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub address: String,
    /// Empty: none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub address_ipv6: String,
}

impl NetworkStatus {
    /// Returns the IPv4 address, else the IPv6 address; empty: there is none.
    pub fn any_address(&self) -> &str {
        match self.address.as_str() {
            "" => &self.address_ipv6,
            address => address,
        }
    }
}

/// Returns the attribute by which a node tells whether it sets up networks of a mode, as in
/// `network.bridge` or `network.cni.lan`; its value is `true` or `false`.
pub fn network_attribute(mode: &str) -> String {
    format!("network.{}", mode.replacen('/', ".", 1))
}
