//! Host networks: the machine's addresses that a range or an interface selects.

use std::net::IpAddr;

use model::node::HostNetwork;
use nix::ifaddrs::getifaddrs;

use crate::config::HostNetworkConfig;
use crate::error::Error;

use super::ports;

/// An address of the machine and its interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Address {
    pub(super) interface: String,
    pub(super) ip: IpAddr,
}

/// Lists the machine's addresses in the order of its interfaces.
///
/// IPv6 link-local addresses are left out: they are reachable only with a scope id, which a task
/// does not get.
pub(super) fn of_machine() -> Result<Vec<Address>, Error> {
    let all = getifaddrs().map_err(|error| Error::Interfaces(error.into()))?;
    let addresses = all.filter_map(|one| {
        let address = one.address?;
        let ip = match (address.as_sockaddr_in(), address.as_sockaddr_in6()) {
            (Some(v4), _) => IpAddr::from(v4.ip()),
            (None, Some(v6)) if !v6.ip().is_unicast_link_local() => IpAddr::from(v6.ip()),
            _ => return None,
        };
        let interface = one.interface_name;
        Some(Address { interface, ip })
    });
    Ok(addresses.collect())
}

/// Selects the addresses of `config` among the machine's.
pub(super) fn resolve(
    alias: &str,
    config: &HostNetworkConfig,
    machine: &[Address],
) -> Result<HostNetwork, Error> {
    let field = format!("host_networks.{alias}");
    let range = match &config.cidr {
        Some(text) => Some(Range::parse(text).ok_or_else(|| {
            let problem = format!("{text:?} is not an address range: write one, as in 10.0.0.0/8");
            Error::setting(format!("{field}.cidr"), problem)
        })?),
        None => None,
    };
    let of_interface: Option<&str> = config.interface.as_deref();
    let is_selected = |address: &&Address| match (&range, of_interface) {
        (Some(range), _) => range.contains(address.ip),
        (None, interface) => interface == Some(address.interface.as_str()),
    };
    match (&config.cidr, of_interface) {
        (None, None) => {
            let problem = "selects no addresses: give it a cidr, as in \"10.0.0.0/8\", or an \
                           interface, as in \"eth1\"";
            return Err(Error::setting(field, problem));
        }
        (Some(_), Some(_)) => {
            let problem = "has a cidr and an interface: leave one of them out";
            return Err(Error::setting(field, problem));
        }
        _ => {}
    }
    let mut addresses: Vec<String> = Vec::new();
    for address in machine.iter().filter(is_selected) {
        let text = address.ip.to_string();
        if !addresses.contains(&text) {
            addresses.push(text);
        }
    }
    if addresses.is_empty() {
        let key = if range.is_some() { "cidr" } else { "interface" };
        let has = machine.iter();
        let has = has.map(|address| format!("{} on {}", address.ip, address.interface));
        let problem = format!(
            "matches no address of this machine, which has {}",
            has.collect::<Vec<_>>().join(", ")
        );
        return Err(Error::setting(format!("{field}.{key}"), problem));
    }
    Ok(HostNetwork {
        addresses,
        reserved_ports: ports::parse(&format!("{field}.reserved_ports"), &config.reserved_ports)?,
    })
}

/// A range of addresses, as in `10.0.0.0/8`.
struct Range {
    base: IpAddr,
    prefix: u32,
}

impl Range {
    fn parse(text: &str) -> Option<Self> {
        let (base, prefix) = text.split_once('/')?;
        let base: IpAddr = base.parse().ok()?;
        let prefix: u32 = prefix.parse().ok()?;
        let bits = if base.is_ipv4() { 32 } else { 128 };
        (prefix <= bits).then_some(Self { base, prefix })
    }

    fn contains(&self, ip: IpAddr) -> bool {
        let differing = match (self.base, ip) {
            (IpAddr::V4(base), IpAddr::V4(ip)) => (base.to_bits() ^ ip.to_bits()).leading_zeros(),
            (IpAddr::V6(base), IpAddr::V6(ip)) => (base.to_bits() ^ ip.to_bits()).leading_zeros(),
            _ => return false,
        };
        differing >= self.prefix
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine() -> Vec<Address> {
        let address = |interface: &str, ip: &str| Address {
            interface: interface.into(),
            ip: ip.parse().unwrap(),
        };
        vec![
            address("lo", "127.0.0.1"),
            address("eth0", "203.0.113.7"),
            address("eth0", "203.0.113.8"),
            address("eth1", "10.1.2.3"),
            address("eth1", "2001:db8::7"),
        ]
    }

    fn config(cidr: Option<&str>, interface: Option<&str>) -> HostNetworkConfig {
        HostNetworkConfig {
            cidr: cidr.map(Into::into),
            interface: interface.map(Into::into),
            reserved_ports: "443".into(),
        }
    }

    #[test]
    fn a_range_or_an_interface_names_addresses_in_the_order_of_the_machine() {
        for (cidr, interface, want) in [
            (
                Some("203.0.113.0/24"),
                None,
                vec!["203.0.113.7", "203.0.113.8"],
            ),
            (Some("203.0.113.8/32"), None, vec!["203.0.113.8"]),
            (Some("0.0.0.0/1"), None, vec!["127.0.0.1", "10.1.2.3"]),
            (Some("2001:db8::/32"), None, vec!["2001:db8::7"]),
            (None, Some("eth1"), vec!["10.1.2.3", "2001:db8::7"]),
        ] {
            let found = resolve("public", &config(cidr, interface), &machine()).unwrap();
            assert_eq!(found.addresses, want, "{cidr:?} {interface:?}");
            assert_eq!(found.reserved_ports, [443]);
        }
    }

    #[test]
    fn a_refusal_names_the_setting_and_the_addresses_of_the_machine() {
        let message = |cidr, interface| {
            let error = resolve("public", &config(cidr, interface), &machine());
            error.unwrap_err().to_string()
        };
        let has = "matches no address of this machine, which has 127.0.0.1 on lo, \
                   203.0.113.7 on eth0, 203.0.113.8 on eth0, 10.1.2.3 on eth1, 2001:db8::7 on eth1";
        for (cidr, interface, want) in [
            (
                Some("192.168.0.0/16"),
                None,
                format!("`host_networks.public.cidr`: {has}"),
            ),
            (
                None,
                Some("eth7"),
                format!("`host_networks.public.interface`: {has}"),
            ),
            (
                Some("10.0.0.0/33"),
                None,
                "`host_networks.public.cidr`: \"10.0.0.0/33\" is not an address range: write \
                 one, as in 10.0.0.0/8"
                    .to_owned(),
            ),
            (
                Some("10.0.0.0/8"),
                Some("eth1"),
                "`host_networks.public`: has a cidr and an interface: leave one of them out"
                    .to_owned(),
            ),
            (
                None,
                None,
                "`host_networks.public`: selects no addresses: give it a cidr, as in \
                 \"10.0.0.0/8\", or an interface, as in \"eth1\""
                    .to_owned(),
            ),
        ] {
            assert_eq!(message(cidr, interface), want);
        }
    }
}
