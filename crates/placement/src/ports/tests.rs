//! Ports: static and dynamic ones, reserved ones, host networks.

use model::job::{Network, Port};
use model::node::HostNetwork;
use proptest::prelude::*;
use test_kit::builders;

use super::*;

const PUBLIC: [&str; 2] = ["203.0.113.1", "203.0.113.2"];
const PRIVATE: &str = "10.0.0.1";

fn port(label: &str, static_port: Option<u16>) -> Port {
    Port {
        label: label.into(),
        static_port,
        host_network: "default".into(),
        ..Port::default()
    }
}

fn asks(ports: &[Port]) -> Vec<PortAsk> {
    let mut group = builders::service("web", 1).task_groups.remove(0);
    group.networks = vec![Network {
        mode: "host".into(),
        ports: ports.to_vec(),
        ..Network::default()
    }];
    PortAsk::of_group(&group)
}

fn on(host_network: &str, port: Port) -> Port {
    Port {
        host_network: host_network.into(),
        ..port
    }
}

fn narrow(min: u16, max: u16) -> Node {
    let mut node = builders::node(1);
    node.min_dynamic_port = min;
    node.max_dynamic_port = max;
    node
}

/// Returns a node with two public addresses and a private one.
fn multihomed() -> Node {
    let mut node = narrow(20_000, 20_003);
    for (alias, addresses) in [("public", PUBLIC.as_slice()), ("private", &[PRIVATE])] {
        let network = HostNetwork {
            addresses: addresses.iter().map(|text| (*text).to_owned()).collect(),
            reserved_ports: Vec::new(),
        };
        node.host_networks.insert(alias.into(), network);
    }
    node
}

fn held(ports: &[(&str, u16)]) -> PortUse {
    let mut held = PortUse::default();
    for (address, value) in ports {
        held.add(&[AllocatedPort {
            host_ip: (*address).to_owned(),
            value: *value,
            ..AllocatedPort::default()
        }]);
    }
    held
}

fn values(ports: &[AllocatedPort]) -> Vec<(&str, u16)> {
    let shown = ports.iter();
    shown
        .map(|port| (port.host_ip.as_str(), port.value))
        .collect()
}

fn nothing() -> PortUse {
    PortUse::default()
}

#[test]
fn scenario_116_a_static_port_is_taken_or_collides() {
    let node = builders::node(1);
    let http = Port {
        to: Some(80),
        ..port("http", Some(8_080))
    };
    let asks = asks(&[http]);
    let assigned = assign_ports(&node, &nothing(), &asks, |_| 0).unwrap();
    assert_eq!((assigned[0].value, assigned[0].to), (8_080, 80));
    let used = held(&[("127.0.0.1", 8_080)]);
    let error = assign_ports(&node, &used, &asks, |_| 0).unwrap_err();
    let want = "network: reserved port collision http=8080";
    assert_eq!(error.to_string(), want);
    assert_eq!(check_static(&node, &used, &asks), Err(error));
}

#[test]
fn scenario_116_a_static_port_goes_to_the_other_address_of_its_host_network() {
    let node = multihomed();
    let asks = asks(&[on("public", port("http", Some(8_080)))]);
    for (used, want) in [
        (vec![], Some(PUBLIC[0])),
        (vec![PUBLIC[0]], Some(PUBLIC[1])),
        // Another host network's address is none of its own.
        (vec![PUBLIC[0], PRIVATE], Some(PUBLIC[1])),
        (vec![PUBLIC[0], PUBLIC[1]], None),
    ] {
        let used: Vec<_> = used.into_iter().map(|address| (address, 8_080)).collect();
        let answer = assign_ports(&node, &held(&used), &asks, |_| 0);
        let got = answer.as_deref().map(values).map_err(ToString::to_string);
        let collision = "network: reserved port collision http=8080".to_owned();
        let want = want.map(|address| vec![(address, 8_080)]).ok_or(collision);
        assert_eq!(got, want, "{used:?}");
        assert_eq!(
            check_static(&node, &held(&used), &asks).is_ok(),
            want.is_ok()
        );
    }
}

#[test]
fn scenario_117_every_port_of_the_range_is_found_and_then_none() {
    let node = narrow(20_000, 20_001);
    let ports = [
        port("a", None),
        Port {
            to: Some(80),
            ..port("b", None)
        },
        port("c", None),
    ];
    // The draw always says the same, so the second port is one of those that are left.
    let assigned = assign_ports(&node, &nothing(), &asks(&ports[..2]), |_| 0).unwrap();
    let shown: Vec<_> = assigned.iter().map(|port| (port.value, port.to)).collect();
    assert_eq!(shown, [(20_000, 20_000), (20_001, 80)]);
    let error = assign_ports(&node, &nothing(), &asks(&ports), |_| 1).unwrap_err();
    assert_eq!(error.to_string(), "network: dynamic port selection failed");
}

#[test]
fn a_dynamic_port_avoids_the_static_ones_of_the_same_ask_and_the_reserved() {
    let mut node = narrow(20_000, 20_002);
    node.reserved_ports.push(20_001);
    let asks = asks(&[port("any", None), port("fixed", Some(20_000))]);
    let assigned = assign_ports(&node, &nothing(), &asks, |_| 0).unwrap();
    let want = [("127.0.0.1", 20_002), ("127.0.0.1", 20_000)];
    assert_eq!(values(&assigned), want);
}

#[test]
fn a_dynamic_port_goes_to_the_next_address_when_the_first_is_full() {
    let mut node = multihomed();
    node.max_dynamic_port = 20_001;
    let ports = [0, 1, 2].map(|n| on("public", port(&format!("p{n}"), None)));
    // Ports of one offer differ wherever they are, so two are all there are.
    let two = assign_ports(&node, &nothing(), &asks(&ports[..2]), |_| 0).unwrap();
    assert_eq!(values(&two), [(PUBLIC[0], 20_000), (PUBLIC[0], 20_001)]);
    let full = assign_ports(&node, &nothing(), &asks(&ports), |_| 0);
    assert_eq!(full, Err(Exhausted::DynamicPorts));
    let used = held(&[
        (PUBLIC[0], 20_000),
        (PUBLIC[0], 20_001),
        (PUBLIC[1], 20_000),
    ]);
    let one = assign_ports(&node, &used, &asks(&ports[..1]), |_| 0).unwrap();
    assert_eq!(values(&one), [(PUBLIC[1], 20_001)]);
}

#[test]
fn reserved_ports_hold_on_every_address_and_those_of_a_network_on_its_own() {
    let mut node = multihomed();
    node.reserved_ports = vec![22];
    node.host_networks.get_mut("public").unwrap().reserved_ports = vec![443];
    let ask = |host_network, number| {
        let asks = asks(&[on(host_network, port("x", Some(number)))]);
        check_static(&node, &nothing(), &asks).is_ok()
    };
    assert!(!ask("public", 22) && !ask("private", 22) && !ask("default", 22));
    assert!(!ask("public", 443) && ask("private", 443) && ask("default", 443));
}

#[test]
fn two_host_networks_on_one_address_do_not_give_a_port_twice() {
    let mut node = multihomed();
    let private = node.host_networks["private"].clone();
    node.host_networks.insert("inside".into(), private);
    let twice = asks(&[
        on("private", port("a", Some(80))),
        on("inside", port("b", Some(80))),
    ]);
    let error = assign_ports(&node, &nothing(), &twice, |_| 0).unwrap_err();
    let want = "network: reserved port collision b=80";
    assert_eq!(error.to_string(), want);
    assert_eq!(check_static(&node, &nothing(), &twice), Err(error));
    node.max_dynamic_port = node.min_dynamic_port;
    let chosen = asks(&[
        on("private", port("a", Some(node.min_dynamic_port))),
        on("inside", port("b", None)),
    ]);
    let full = assign_ports(&node, &nothing(), &chosen, |_| 0);
    assert_eq!(full, Err(Exhausted::DynamicPorts));
}

/// Each of them has to be on another address: the number of attempts does not multiply with them.
#[test]
fn the_same_port_on_many_host_networks_is_found_at_once() {
    let (mut node, mut ports) = (builders::node(1), Vec::new());
    for number in 0..200_u8 {
        let network = HostNetwork {
            addresses: vec![format!("10.0.0.{number}")],
            reserved_ports: Vec::new(),
        };
        let alias = format!("net{number}");
        ports.push(on(&alias, port(&format!("p{number}"), Some(9_000))));
        node.host_networks.insert(alias.as_str().into(), network);
    }
    let asks = asks(&ports);
    assert_eq!(check_static(&node, &nothing(), &asks), Ok(()));
    let assigned = assign_ports(&node, &nothing(), &asks, |_| 0).unwrap();
    assert_eq!(assigned.len(), 200);
}

#[test]
fn a_port_that_ignores_collisions_is_assigned_although_it_is_held() {
    let node = builders::node(1);
    let shared = Port {
        ignore_collision: true,
        ..port("dns", Some(53))
    };
    let used = held(&[("127.0.0.1", 53)]);
    let assigned = assign_ports(&node, &used, &asks(&[shared]), |_| 0).unwrap();
    assert_eq!(values(&assigned), [("127.0.0.1", 53)]);
    assert_eq!(check_given(&node, &used, &assigned), Ok(()));
    // It holds the port for those that mind.
    assert!(check_static(&node, &used, &asks(&[port("dns", Some(53))])).is_err());
}

#[test]
fn a_host_network_without_addresses_has_no_ports() {
    let mut node = multihomed();
    node.host_networks
        .get_mut("public")
        .unwrap()
        .addresses
        .clear();
    for number in [None, Some(80)] {
        let asks = asks(&[on("public", port("x", number))]);
        let error = assign_ports(&node, &nothing(), &asks, |_| 0).unwrap_err();
        let want = "network: no addresses available for public network";
        assert_eq!(error.to_string(), want);
    }
}

#[test]
fn a_host_network_may_be_named_by_what_the_node_says() {
    let mut node = multihomed();
    let asks = asks(&[on("${meta.net}", port("http", Some(80)))]);
    let want = "invalid host network \"${meta.net}\" template for port \"http\"";
    assert_eq!(asks[0].check_network(&node), Err(want.to_owned()));
    node.meta.insert("net".into(), "lan".into());
    let want = "missing host network \"lan\" for port \"http\"";
    assert_eq!(asks[0].check_network(&node), Err(want.to_owned()));
    node.meta.insert("net".into(), "private".into());
    assert_eq!(asks[0].check_network(&node), Ok(()));
    let assigned = assign_ports(&node, &nothing(), &asks, |_| 0).unwrap();
    assert_eq!(values(&assigned), [(PRIVATE, 80)]);
}

#[test]
fn a_range_upside_down_has_no_ports() {
    let asks = asks(&[port("a", None)]);
    assert_eq!(
        assign_ports(&narrow(5, 4), &nothing(), &asks, |_| 0),
        Err(Exhausted::DynamicPorts)
    );
}

#[test]
fn the_last_port_of_a_wide_range_is_found() {
    let node = narrow(0, u16::MAX);
    let mut used = PortUse::default();
    let ports = (0..=u16::MAX).filter(|value| *value != 40_000);
    let ports: Vec<_> = ports.map(|value| ("127.0.0.1", value)).collect();
    let taken = ports.iter().map(|(address, value)| AllocatedPort {
        host_ip: (*address).to_owned(),
        value: *value,
        ..AllocatedPort::default()
    });
    used.add(&taken.collect::<Vec<_>>());
    let assigned = assign_ports(&node, &used, &asks(&[port("a", None)]), |_| 0).unwrap();
    assert_eq!(values(&assigned), [("127.0.0.1", 40_000)]);
}

proptest! {
    /// For any held and requested ports: assigned ports pass the plan-applier's check, ports of one
    /// offer differ by address and number, and a lone ask is refused only if nothing is free.
    #[test]
    fn assigned_ports_were_free(
        used in prop::collection::vec((0..3_usize, 20_000_u16..20_004), 0..12),
        asked in prop::collection::vec((0..3_usize, any::<bool>(), 20_000_u16..20_004), 1..4),
        reserved in prop::collection::vec(20_000_u16..20_004, 0..2),
        seed in any::<u32>(),
    ) {
        let mut node = multihomed();
        node.host_networks.get_mut("private").unwrap().reserved_ports = reserved;
        let addresses = [PUBLIC[0], PUBLIC[1], PRIVATE];
        let used: Vec<_> = used.into_iter().map(|(a, value)| (addresses[a], value)).collect();
        let used = held(&used);
        let ports = asked.iter().enumerate().map(|(label, (network, fixed, value))| {
            let network = ["public", "private", "default"][*network];
            on(network, port(&format!("p{label}"), fixed.then_some(*value)))
        });
        let asks = asks(&ports.collect::<Vec<_>>());
        let mut draws = seed;
        let answer = assign_ports(&node, &used, &asks, |bound| {
            draws = draws.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            draws % bound
        });
        match answer {
            Ok(assigned) => {
                prop_assert_eq!(check_given(&node, &used, &assigned), Ok(()));
                prop_assert_eq!(check_static(&node, &used, &asks), Ok(()));
                for (ask, given) in asks.iter().zip(&assigned) {
                    prop_assert_eq!(&ask.label, &given.label);
                    let own = node.addresses(&ask.host_network).unwrap();
                    prop_assert!(own.contains(&given.host_ip));
                    prop_assert!(ask.static_port.is_none_or(|port| port == given.value));
                }
            }
            Err(_) if asks.len() == 1 => {
                let own = node.addresses(&asks[0].host_network).unwrap();
                let mut free = (20_000..=20_003_u16).filter(|value| {
                    asks[0].static_port.is_none_or(|port| port == *value)
                        && own.iter().any(|address| {
                            !used.holds(address, *value) && !node.is_port_reserved(address, *value)
                        })
                });
                prop_assert_eq!(free.next(), None);
            }
            Err(_) => {}
        }
    }
}

#[test]
fn ports_of_tasks_are_assigned_after_those_of_the_group_and_name_their_task() {
    let mut group = builders::service("web", 1).task_groups.remove(0);
    let network = |ports: &[Port]| Network {
        mode: "bridge".into(),
        ports: ports.to_vec(),
        mbits: Some(10),
        ..Network::default()
    };
    group.networks = vec![network(&[port("http", None)])];
    let mut other = group.tasks[0].clone();
    other.name = "other".into();
    group.tasks[0].resources.networks = vec![network(&[port("db", Some(5_432))])];
    other.resources.networks = vec![network(&[port("db", None)])];
    group.tasks.push(other);
    let first = group.tasks[0].name.clone();
    let asks = PortAsk::of_group(&group);
    let assigned = assign_ports(&narrow(20_000, 20_001), &PortUse::default(), &asks, |_| 0);
    let assigned = assigned.unwrap();
    let owners: Vec<_> = assigned
        .iter()
        .map(|port| (port.task.as_str(), port.label.as_str()))
        .collect();
    assert_eq!(owners, [("", "http"), (&*first, "db"), ("other", "db")]);
    assert_eq!(assigned[1].value, 5_432);
    // The two dynamic ones differ although their networks do.
    let (of_group, of_task) = (assigned[0].value, assigned[2].value);
    assert_eq!(of_group.min(of_task), 20_000);
    assert_eq!(of_group.max(of_task), 20_001);
    // A third has no room.
    let more = [asks.clone(), asks].concat();
    assert!(assign_ports(&narrow(20_000, 20_001), &PortUse::default(), &more, |_| 0).is_err());
}

#[test]
fn a_port_on_an_address_that_the_node_has_lost_is_held_on_each_of_its_addresses() {
    let node = multihomed();
    let asks = asks(&[on("public", port("http", Some(8_080)))]);
    let gone = held(&[("172.18.0.7", 8_080)]);
    let error = assign_ports(&node, &gone, &asks, |_| 0).unwrap_err();
    assert_eq!(
        error.to_string(),
        "network: reserved port collision http=8080"
    );
    assert_eq!(check_static(&node, &gone, &asks), Err(error.clone()));
    let given = |address: &str, value| AllocatedPort {
        label: "http".into(),
        value,
        host_ip: address.to_owned(),
        ..AllocatedPort::default()
    };
    for address in [PUBLIC[0], PUBLIC[1], PRIVATE] {
        let answer = check_given(&node, &gone, &[given(address, 8_080)]);
        assert_eq!(answer, Err(error.clone()), "{address}");
        assert!(is_held(&node, &gone, address, 8_080), "{address}");
        assert_eq!(
            check_given(&node, &gone, &[given(address, 8_081)]),
            Ok(()),
            "{address}"
        );
    }
    let dynamic = self::asks(&[on("public", port("any", None))]);
    let gone = held(&[
        ("172.18.0.7", 20_000),
        ("172.18.0.7", 20_001),
        ("172.18.0.8", 20_003),
    ]);
    let assigned = assign_ports(&node, &gone, &dynamic, |_| 0).unwrap();
    assert_eq!(values(&assigned), [(PUBLIC[0], 20_002)]);
}
