//! Hosts of the cluster: names, roles and addresses.

use std::net::Ipv4Addr;

/// Members of etcd: the fewest that survive the loss of one.
pub const MEMBERS: usize = 3;
/// Number of nodes. Their tasks are simulated, so more nodes would add only load.
pub const NODES: usize = 3;
/// Suffixes of the two processes of a service.
pub const TWINS: [&str; 2] = ["a", "b"];

/// Port of the services; each has a host of its own.
pub const PORT: u16 = 4646;
pub const ETCD_PORT: u16 = 2379;
pub const ETCD_PEER_PORT: u16 = 2380;

/// The host of the workload and the recorder, without faults.
pub const USER: &str = "user";

/// Returns the names of all hosts; a host's number is its position.
pub fn all() -> Vec<String> {
    let mut names = vec![USER.to_owned()];
    names.extend(members());
    for service in crate::suite::SERVICES {
        names.extend(twins(service));
    }
    names.extend(nodes());
    names
}

pub fn members() -> Vec<String> {
    (1..=MEMBERS)
        .map(|number| format!("etcd-{number}"))
        .collect()
}

pub fn nodes() -> Vec<String> {
    (1..=NODES)
        .map(|number| format!("client-node-{number}"))
        .collect()
}

/// Returns the two hosts of a service.
pub fn twins(service: &str) -> Vec<String> {
    TWINS
        .iter()
        .map(|twin| format!("{service}-{twin}"))
        .collect()
}

/// Returns the hosts of every service.
pub fn services() -> Vec<String> {
    crate::suite::SERVICES
        .iter()
        .flat_map(|service| twins(service))
        .collect()
}

/// Returns the service on a host, as in `eval-broker` or `etcd`.
pub fn kind(host: &str) -> &str {
    host.rsplit_once('-').map_or(host, |(kind, _)| kind)
}

/// Returns the address of host number `number`.
pub fn address(number: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 77, 0, number + 1)
}

/// Returns the number of the host with `address`; `None`: outside the range.
pub fn number(address: Ipv4Addr) -> Option<u8> {
    match address.octets() {
        [10, 77, 0, last] => last.checked_sub(1),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_host_has_a_distinct_address_and_a_kind() {
        let all = all();
        assert_eq!(all.len(), 1 + MEMBERS + 2 * 6 + NODES);
        for number in 0..u8::try_from(all.len()).unwrap() {
            assert_eq!(super::number(address(number)), Some(number));
        }
        assert_eq!(super::number(Ipv4Addr::new(10, 77, 0, 0)), None);
        assert_eq!(super::number(Ipv4Addr::new(224, 0, 0, 1)), None);
        assert_eq!(kind("scheduler-worker-a"), "scheduler-worker");
        assert_eq!(kind("etcd-2"), "etcd");
    }
}
