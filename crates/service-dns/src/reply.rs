//! Replies: the instances that an answer has, and their order. Pure.

use std::net::IpAddr;

use model::ServiceHealth;
use rand::Rng;
use rand::seq::SliceRandom as _;
use service_watch::Instance;

/// Instances in one answer. With their targets they fit into a response over TCP.
const INSTANCES_MAX: usize = 256;

/// The records that a question asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RecordKind {
    V4,
    V6,
    Any,
    Srv,
}

/// The node that answers, for the order.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Locality<'a> {
    pub(crate) node_id: &'a str,
    pub(crate) datacenter: &'a str,
}

/// Returns the instances of an answer: those whose checks pass, with the tag and in the datacenter if they are
/// given, each address once. The nearest come first: on the node itself, then in its datacenter; at the same
/// distance their order is random.
pub(crate) fn choose<'i>(
    instances: &'i [Instance],
    (tag, datacenter): (Option<&str>, Option<&str>),
    kind: RecordKind,
    locality: Locality<'_>,
    rng: &mut impl Rng,
) -> Vec<&'i Instance> {
    let is_wanted = |instance: &&Instance| {
        let has_tag = |tag: &str| instance.tags.iter().any(|it| it.eq_ignore_ascii_case(tag));
        instance.health == ServiceHealth::Passing
            && tag.is_none_or(has_tag)
            && datacenter.is_none_or(|it| instance.datacenter.eq_ignore_ascii_case(it))
            && has_record(instance, kind)
    };
    let mut chosen: Vec<&Instance> = instances.iter().filter(is_wanted).collect();
    chosen.shuffle(rng);
    chosen.sort_by_key(|instance| distance(instance, locality));
    let mut seen = std::collections::BTreeSet::new();
    chosen.retain(|instance| {
        let port = if kind == RecordKind::Srv {
            instance.port
        } else {
            0
        };
        seen.insert((instance.address.as_str(), port))
    });
    chosen.truncate(INSTANCES_MAX);
    chosen
}

fn has_record(instance: &Instance, kind: RecordKind) -> bool {
    match (kind, instance.address.parse::<IpAddr>()) {
        (RecordKind::Srv, _) => instance.port != 0,
        (RecordKind::V4, Ok(address)) => address.is_ipv4(),
        (RecordKind::V6, Ok(address)) => address.is_ipv6(),
        (RecordKind::Any, Ok(_)) => true,
        // A host name, which is an alias.
        (_, Err(_)) => !instance.address.is_empty(),
    }
}

fn distance(instance: &Instance, locality: Locality<'_>) -> u8 {
    if instance.node_id == locality.node_id {
        0
    } else if instance.datacenter == locality.datacenter {
        1
    } else {
        2
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use rand::SeedableRng as _;
    use rand::rngs::StdRng;

    use super::*;

    const LOCALITY: Locality<'_> = Locality {
        node_id: "n1",
        datacenter: "dc1",
    };

    fn instance(id: &str, address: &str, node: &str, datacenter: &str) -> Instance {
        Instance {
            id: id.to_owned(),
            address: address.to_owned(),
            port: 8_080,
            tags: vec![format!("of-{id}")],
            node_id: node.to_owned(),
            datacenter: datacenter.to_owned(),
            ..Instance::default()
        }
    }

    fn ids(instances: &[Instance], kind: RecordKind, seed: u64) -> Vec<String> {
        let mut rng = StdRng::seed_from_u64(seed);
        let chosen = choose(instances, (None, None), kind, LOCALITY, &mut rng);
        chosen.iter().map(|it| it.id.clone()).collect()
    }

    #[test]
    fn the_nearest_come_first_and_equals_in_any_order() {
        let instances = [
            instance("far1", "10.2.0.1", "n9", "dc2"),
            instance("near1", "10.0.0.2", "n2", "dc1"),
            instance("own", "10.0.0.1", "n1", "dc1"),
            instance("near2", "10.0.0.3", "n3", "dc1"),
            instance("far2", "10.2.0.2", "n8", "dc2"),
        ];
        let orders: BTreeSet<Vec<String>> = (0..50)
            .map(|seed| ids(&instances, RecordKind::V4, seed))
            .collect();
        assert_eq!(orders.len(), 4, "two pairs in two orders each");
        for order in orders {
            assert_eq!(order[0], "own");
            assert!(order[1].starts_with("near") && order[2].starts_with("near"));
        }
    }

    #[test]
    fn instances_whose_checks_do_not_pass_are_left_out() {
        let mut instances = [
            instance("passing", "10.0.0.1", "n1", "dc1"),
            instance("pending", "10.0.0.2", "n1", "dc1"),
            instance("failing", "10.0.0.3", "n1", "dc1"),
        ];
        instances[1].health = ServiceHealth::Pending;
        instances[2].health = ServiceHealth::Failing;
        assert_eq!(ids(&instances, RecordKind::Any, 1), ["passing"]);
    }

    #[test]
    fn a_record_needs_an_address_of_its_family_and_srv_needs_a_port() {
        let mut instances = [
            instance("v4", "10.0.0.1", "n1", "dc1"),
            instance("v6", "fd00::1", "n2", "dc1"),
            instance("host", "db.example.com", "n9", "dc2"),
            instance("no-port", "10.0.0.9", "n9", "dc3"),
        ];
        instances[3].port = 0;
        instances[3].datacenter = "dc1".to_owned();
        let of = |kind| {
            ids(&instances, kind, 1)
                .into_iter()
                .collect::<BTreeSet<_>>()
        };
        assert_eq!(
            of(RecordKind::V4),
            BTreeSet::from(["v4", "host", "no-port"].map(str::to_owned))
        );
        assert_eq!(
            of(RecordKind::V6),
            BTreeSet::from(["v6", "host"].map(str::to_owned))
        );
        assert_eq!(
            of(RecordKind::Srv),
            BTreeSet::from(["v4", "v6", "host"].map(str::to_owned))
        );
    }

    #[test]
    fn an_address_is_named_once_a_port_of_it_each() {
        let mut instances = [
            instance("a", "10.0.0.1", "n1", "dc1"),
            instance("b", "10.0.0.1", "n1", "dc1"),
        ];
        instances[1].port = 9_090;
        assert_eq!(ids(&instances, RecordKind::V4, 1).len(), 1);
        assert_eq!(ids(&instances, RecordKind::Srv, 1).len(), 2);
    }

    #[test]
    fn tags_and_datacenters_choose() {
        let instances = [
            instance("a", "10.0.0.1", "n1", "dc1"),
            instance("b", "10.0.0.2", "n2", "dc2"),
        ];
        let of = |tag, datacenter| {
            let mut rng = StdRng::seed_from_u64(1);
            let chosen = choose(
                &instances,
                (tag, datacenter),
                RecordKind::V4,
                LOCALITY,
                &mut rng,
            );
            chosen.iter().map(|it| it.id.as_str()).collect::<String>()
        };
        assert_eq!(of(Some("OF-A"), None), "a");
        assert_eq!(of(None, Some("dc2")), "b");
        assert_eq!(of(Some("of-a"), Some("dc2")), "");
    }
}
