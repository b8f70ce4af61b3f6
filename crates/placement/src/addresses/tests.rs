//! Ports on addresses that a node has lost.

use model::job::{Network, Port};
use model::node::HostNetwork;
use model::{Allocation, Job, NodeId};
use test_kit::{Stored, builders};

use super::*;

const OLD: &str = "172.18.0.7";
const NEW: &str = "172.18.0.9";

fn port(label: &str, host_network: &str) -> Port {
    Port {
        label: label.into(),
        static_port: Some(8_080),
        host_network: host_network.into(),
        ..Port::default()
    }
}

fn network(ports: &[Port]) -> Network {
    Network {
        mode: "host".into(),
        ports: ports.to_vec(),
        ..Network::default()
    }
}

/// Returns a job with a port of the group on the default host network, and one of the task on `public`.
fn job() -> Job {
    let mut job = builders::service("web", 1);
    job.task_groups[0].networks = vec![network(&[port("http", "")])];
    let task = &mut job.task_groups[0].tasks[0];
    task.resources.networks = vec![network(&[port("rpc", "public")])];
    job
}

/// Returns a node with `host_ip`, and with the host networks of `networks`.
fn node(host_ip: &str, networks: &[(&str, &[&str])]) -> Node {
    let mut node = builders::node(1);
    node.host_ip = host_ip.into();
    for (alias, addresses) in networks {
        let addresses = addresses.iter().map(|address| (*address).to_owned());
        let network = HostNetwork {
            addresses: addresses.collect(),
            reserved_ports: Vec::new(),
        };
        node.host_networks.insert((*alias).to_owned(), network);
    }
    node
}

/// Returns the allocation of [`job`] with these ports: label, task and host address.
fn alloc(ports: &[(&str, &str, &str)]) -> Allocation {
    let mut alloc = builders::allocation(1, &job(), NodeId::from_random(1));
    let ports = ports.iter().map(|(label, task, host_ip)| AllocatedPort {
        label: (*label).to_owned(),
        value: 8_080,
        to: 8_080,
        host_ip: (*host_ip).to_owned(),
        task: (*task).to_owned(),
        ..AllocatedPort::default()
    });
    alloc.resources.ports = ports.collect();
    alloc
}

fn lost_of(node: &Node, alloc: &Allocation) -> Option<String> {
    let mut stored = Stored::default();
    stored.put_node(node);
    stored.put_job(&job());
    stored.put_alloc(alloc);
    let snapshot = stored.snapshot();
    let view = snapshot.alloc(alloc.id).unwrap();
    lost_port(&snapshot, view).map(|port| port.label.clone())
}

#[test]
fn a_port_is_lost_when_its_address_is_gone_and_its_host_network_has_another() {
    let http = [("http", "", OLD)].as_slice();
    let rpc = [("rpc", "server", OLD)].as_slice();
    let both = [("http", "", NEW), ("rpc", "server", OLD)].as_slice();
    for (what, node, ports, want) in [
        ("the same address", node(OLD, &[]), http, None),
        ("another address", node(NEW, &[]), http, Some("http")),
        ("no ports", node(NEW, &[]), [].as_slice(), None),
        (
            "no address stored",
            node(NEW, &[]),
            &[("http", "", "")],
            None,
        ),
        ("no network", node("127.0.0.1", &[]), http, None),
        ("IPv6 loopback", node("::1", &[]), http, None),
        ("no address at all", node("", &[]), http, None),
        (
            "from loopback to a network",
            node(NEW, &[]),
            &[("http", "", "127.0.0.1")],
            Some("http"),
        ),
        (
            "the alias default takes the place of the host address",
            node(NEW, &[("default", &[OLD])]),
            http,
            None,
        ),
        (
            "the alias default has another address",
            node("10.0.0.1", &[("default", &[NEW])]),
            http,
            Some("http"),
        ),
        (
            "the alias default has no address",
            node("10.0.0.1", &[("default", &[])]),
            http,
            None,
        ),
        (
            "another host network has the address now",
            node(NEW, &[("private", &[OLD])]),
            http,
            None,
        ),
        (
            "a task's port, and its host network has another address",
            node("10.0.0.1", &[("public", &[NEW])]),
            rpc,
            Some("rpc"),
        ),
        (
            "one of several addresses is left",
            node("10.0.0.1", &[("public", &[NEW, OLD])]),
            rpc,
            None,
        ),
        (
            "its host network has no address while an interface is down",
            node(NEW, &[("public", &[])]),
            rpc,
            None,
        ),
        ("its host network is gone", node(NEW, &[]), rpc, None),
        (
            "the second port",
            node(NEW, &[("public", &["203.0.113.1"])]),
            both,
            Some("rpc"),
        ),
        (
            "a label that the group has not",
            node(NEW, &[]),
            &[("other", "", OLD)],
            None,
        ),
        (
            "a task that has no such port",
            node(NEW, &[]),
            &[("http", "server", OLD)],
            None,
        ),
    ] {
        assert_eq!(lost_of(&node, &alloc(ports)).as_deref(), want, "{what}");
    }
}

#[test]
fn a_node_that_is_not_ready_loses_no_port() {
    for status in [
        NodeStatus::Initializing,
        NodeStatus::Disconnected,
        NodeStatus::Down,
    ] {
        let node = Node {
            status,
            ..node(NEW, &[])
        };
        let lost = lost_of(&node, &alloc(&[("http", "", OLD)]));
        assert_eq!(lost, None, "{}", status.as_str());
    }
}

#[test]
fn the_ports_of_a_version_that_is_gone_are_not_judged() {
    let mut alloc = alloc(&[("http", "", OLD)]);
    alloc.job_version = 7;
    assert_eq!(lost_of(&node(NEW, &[]), &alloc), None);
}

#[test]
fn a_new_allocation_needs_addresses_that_its_node_has() {
    let node = node(NEW, &[("public", &["203.0.113.1"])]);
    let ports = |host_ip| alloc(&[("http", "", host_ip)]).resources.ports;
    for address in [NEW, "203.0.113.1", ""] {
        assert_eq!(check_given(&node, &ports(address)), Ok(()), "{address}");
    }
    assert_eq!(
        check_given(&node, &ports(OLD)),
        Err("node no longer has the address 172.18.0.7 of port \"http\"".to_owned())
    );
}
