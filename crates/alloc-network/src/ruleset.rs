//! The table of nftables: its chains and the elements of one allocation. No I/O.
//!
//! Shape: maps from (protocol, port) or (address, protocol, port) of the host to (address, port) of an
//! allocation; sets of allocations' addresses. Each element's comment names its allocation. The chains
//! are the same whatever the allocations.

use std::net::IpAddr;

use model::{AllocId, NetworkStatus};

use crate::plan::PortMapping;

/// Name of the table, in the family `inet`.
pub(crate) const TABLE: &str = "kafila";

const PROTOCOLS: [&str; 2] = ["tcp", "udp"];

/// The chains and empty maps. Loading it again changes nothing.
///
/// Source of the priorities: those of `dstnat` and `srcnat` in the documentation of nftables; the
/// names are not accepted in the hook `output` by the versions of all supported distributions.
const BASE: &str = "\
add table inet kafila
add map inet kafila any4 { type inet_proto . inet_service : ipv4_addr . inet_service; }
add map inet kafila host4 { type ipv4_addr . inet_proto . inet_service : ipv4_addr . inet_service; }
add map inet kafila any6 { type inet_proto . inet_service : ipv6_addr . inet_service; }
add map inet kafila host6 { type ipv6_addr . inet_proto . inet_service : ipv6_addr . inet_service; }
add set inet kafila allocs4 { type ipv4_addr; }
add set inet kafila allocs6 { type ipv6_addr; }
add set inet kafila bridged4 { type ipv4_addr; }
add set inet kafila bridged6 { type ipv6_addr; }
add set inet kafila bridges { type ifname; }
add chain inet kafila map_ports
add chain inet kafila guard { type filter hook prerouting priority -300; policy accept; }
add chain inet kafila prerouting { type nat hook prerouting priority -100; policy accept; }
add chain inet kafila output { type nat hook output priority -100; policy accept; }
add chain inet kafila postrouting { type nat hook postrouting priority 100; policy accept; }
flush chain inet kafila map_ports
flush chain inet kafila guard
flush chain inet kafila prerouting
flush chain inet kafila output
flush chain inet kafila postrouting
add rule inet kafila guard iifname @bridges ip daddr 127.0.0.0/8 drop
add rule inet kafila map_ports dnat ip to ip daddr . meta l4proto . th dport map @host4
add rule inet kafila map_ports dnat ip to meta l4proto . th dport map @any4
add rule inet kafila map_ports dnat ip6 to ip6 daddr . meta l4proto . th dport map @host6
add rule inet kafila map_ports dnat ip6 to meta l4proto . th dport map @any6
add rule inet kafila prerouting fib daddr type local jump map_ports
add rule inet kafila output fib daddr type local jump map_ports
add rule inet kafila postrouting ct status dnat ip saddr @allocs4 ip daddr @allocs4 masquerade
add rule inet kafila postrouting ct status dnat ip saddr 127.0.0.0/8 ip daddr @allocs4 masquerade
add rule inet kafila postrouting ct status dnat ip6 saddr @allocs6 ip6 daddr @allocs6 masquerade
add rule inet kafila postrouting ip saddr @bridged4 oifname != @bridges masquerade
add rule inet kafila postrouting ip6 saddr @bridged6 oifname != @bridges masquerade
";

/// An element of a map or set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Element {
    /// The map or set.
    pub(crate) set: String,
    /// As in `tcp . 8080`.
    pub(crate) key: String,
    /// As in `172.26.64.2 . 80`; `None` in a set.
    pub(crate) value: Option<String>,
    /// Empty: the element belongs to no allocation.
    pub(crate) comment: String,
}

/// Returns the elements of an allocation. `bridge`: the bridge that it is on; `None`: another network,
/// whose plugins masquerade.
pub(crate) fn elements(
    alloc_id: AllocId,
    ports: &[PortMapping],
    status: &NetworkStatus,
    bridge: Option<&str>,
) -> Vec<Element> {
    let mut elements = Vec::new();
    let mut add = |set: &str, key: String, value| {
        elements.push(Element {
            set: set.to_owned(),
            key,
            value,
            comment: alloc_id.to_string(),
        });
    };
    for (address, is_family, names) in [
        (
            &status.address,
            IpAddr::is_ipv4 as fn(&IpAddr) -> bool,
            ["any4", "host4", "allocs4", "bridged4"],
        ),
        (
            &status.address_ipv6,
            IpAddr::is_ipv6,
            ["any6", "host6", "allocs6", "bridged6"],
        ),
    ] {
        if address.is_empty() {
            continue;
        }
        let [any, host, allocs, bridged] = names;
        add(allocs, address.clone(), None);
        if bridge.is_some() {
            add(bridged, address.clone(), None);
        }
        for PortMapping {
            host_ip,
            host_port,
            to,
        } in ports
        {
            let value = format!("{address} . {to}");
            for protocol in PROTOCOLS {
                match host_ip {
                    None => add(
                        any,
                        format!("{protocol} . {host_port}"),
                        Some(value.clone()),
                    ),
                    Some(ip) if is_family(ip) => {
                        add(
                            host,
                            format!("{ip} . {protocol} . {host_port}"),
                            Some(value.clone()),
                        );
                    }
                    Some(_) => {}
                }
            }
        }
    }
    if let Some(bridge) = bridge {
        elements.push(Element {
            set: "bridges".to_owned(),
            key: format!("{bridge:?}"),
            value: None,
            comment: String::new(),
        });
    }
    elements
}

/// Returns the transaction that removes `old` elements and adds `new` ones.
pub(crate) fn transaction(old: &[Element], new: &[Element]) -> String {
    let mut text = BASE.to_owned();
    for Element { set, key, .. } in old {
        text += &format!("delete element inet {TABLE} {set} {{ {key} }}\n");
    }
    for Element {
        set,
        key,
        value,
        comment,
    } in new
    {
        let comment = match comment.as_str() {
            "" => String::new(),
            comment => format!(" comment {comment:?}"),
        };
        let value = value
            .as_ref()
            .map(|value| format!(" : {value}"))
            .unwrap_or_default();
        text += &format!("add element inet {TABLE} {set} {{ {key}{comment}{value} }}\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(address: &str, address_ipv6: &str) -> NetworkStatus {
        NetworkStatus {
            interface: "eth0".to_owned(),
            address: address.to_owned(),
            address_ipv6: address_ipv6.to_owned(),
        }
    }

    fn lines(
        ports: &[(Option<&str>, u16, u16)],
        status: &NetworkStatus,
        bridge: Option<&str>,
    ) -> Vec<String> {
        let ports: Vec<PortMapping> = ports
            .iter()
            .map(|(host_ip, host_port, to)| PortMapping {
                host_ip: host_ip.map(|ip| ip.parse().unwrap()),
                host_port: *host_port,
                to: *to,
            })
            .collect();
        let elements = elements(AllocId::from_random(1), &ports, status, bridge);
        let lines = elements.iter().map(|it| match &it.value {
            Some(value) => format!("{}: {} -> {value}", it.set, it.key),
            None => format!("{}: {}", it.set, it.key),
        });
        lines.collect()
    }

    #[test]
    fn a_port_leads_to_the_allocation_by_both_protocols_and_families() {
        for (ports, status, bridge, want) in [
            (
                vec![(None, 8080, 80)],
                status("172.26.64.2", ""),
                Some("kafila"),
                vec![
                    "allocs4: 172.26.64.2",
                    "bridged4: 172.26.64.2",
                    "any4: tcp . 8080 -> 172.26.64.2 . 80",
                    "any4: udp . 8080 -> 172.26.64.2 . 80",
                    "bridges: \"kafila\"",
                ],
            ),
            (
                vec![(Some("10.0.0.1"), 8080, 80)],
                status("172.26.64.2", "fd00::2"),
                None,
                vec![
                    "allocs4: 172.26.64.2",
                    "host4: 10.0.0.1 . tcp . 8080 -> 172.26.64.2 . 80",
                    "host4: 10.0.0.1 . udp . 8080 -> 172.26.64.2 . 80",
                    "allocs6: fd00::2",
                ],
            ),
            (
                vec![(Some("2001:db8::1"), 53, 53), (None, 9, 9)],
                status("", "fd00::2"),
                None,
                vec![
                    "allocs6: fd00::2",
                    "host6: 2001:db8::1 . tcp . 53 -> fd00::2 . 53",
                    "host6: 2001:db8::1 . udp . 53 -> fd00::2 . 53",
                    "any6: tcp . 9 -> fd00::2 . 9",
                    "any6: udp . 9 -> fd00::2 . 9",
                ],
            ),
        ] {
            assert_eq!(lines(&ports, &status, bridge), want);
        }
    }

    #[test]
    fn a_transaction_removes_before_it_adds() {
        let element = |value: &str| Element {
            set: "any4".to_owned(),
            key: "tcp . 80".to_owned(),
            value: Some(value.to_owned()),
            comment: "a1".to_owned(),
        };
        let text = transaction(&[element("10.0.0.1 . 1")], &[element("10.0.0.2 . 2")]);
        let tail: Vec<&str> = text.lines().skip(BASE.lines().count()).collect();
        assert_eq!(
            tail,
            [
                "delete element inet kafila any4 { tcp . 80 }",
                "add element inet kafila any4 { tcp . 80 comment \"a1\" : 10.0.0.2 . 2 }",
            ]
        );
        assert!(text.starts_with("add table inet kafila\n"));
    }
}
