//! Devices: names, constraints, affinities, and the search for instances of several requests.

use model::job::DeviceRequest;
use model::node::{DeviceInstance, NodeDevice};
use model::{Affinity, Constraint, Node, Operator};
use proptest::prelude::*;
use state::dedicated::DeviceRef;
use test_kit::builders;

use super::ask::DeviceAsk;
use super::choose::choose;
use super::short::{fault, short_of};

use crate::holds::Holds;

/// Nothing is held.
struct Free;

impl Holds for Free {
    fn holds_core(&self, _: u16) -> bool {
        false
    }

    fn holds_device(&self, _: DeviceRef<'_>) -> bool {
        false
    }
}

fn kind(words: &str, ids: &[&str], attributes: &[(&str, &str)]) -> NodeDevice {
    let mut words = words.split('/').map(str::to_owned);
    let instances = ids.iter().map(|id| DeviceInstance {
        id: (*id).to_owned(),
        healthy: true,
    });
    NodeDevice {
        vendor: words.next().unwrap(),
        device_type: words.next().unwrap(),
        name: words.next().unwrap(),
        attributes: attributes
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect(),
        env: String::new(),
        instances: instances.collect(),
    }
}

/// A small and a large model, and something else.
fn node() -> Node {
    let mut node = builders::node(1);
    node.devices = vec![
        kind(
            "nvidia/gpu/k80",
            &["a", "b"],
            &[("memory", "4 GiB"), ("ecc", "false")],
        ),
        kind("nvidia/gpu/a100", &["c", "d"], &[("memory", "40960 MiB")]),
        kind("xilinx/fpga/u50", &["e"], &[]),
    ];
    node
}

fn ask(name: &str, count: u64, constraints: &[&str], affinities: &[(&str, i8)]) -> DeviceAsk {
    let words = |text: &str| {
        let mut words = text.splitn(3, ' ').map(str::to_owned);
        let left = format!("${{device.{}}}", words.next().unwrap());
        let operator = Operator::parse(&words.next().unwrap()).unwrap();
        (left, operator, words.next().unwrap_or_default())
    };
    let constraints = constraints.iter().map(|text| {
        let (left, operator, right) = words(text);
        Constraint {
            left,
            operator,
            right,
        }
    });
    let affinities = affinities.iter().map(|(text, weight)| {
        let (left, operator, right) = words(text);
        Affinity {
            left,
            operator,
            right,
            weight: *weight,
        }
    });
    DeviceAsk::new(&DeviceRequest {
        name: name.into(),
        count,
        constraints: constraints.collect(),
        affinities: affinities.collect(),
    })
}

/// Returns the ids that each request gets, and the score.
fn chosen(asks: &[DeviceAsk]) -> Option<(Vec<String>, Option<f64>)> {
    let node = node();
    let asks: Vec<_> = asks.iter().collect();
    let choice = choose(&asks, &node, &Free)?;
    let ids = choice.chosen.iter().map(|chosen| {
        let instances = &node.devices[chosen.kind].instances;
        let ids = chosen.instances.iter().map(|at| instances[*at].id.as_str());
        ids.collect()
    });
    Some((ids.collect(), choice.score))
}

#[test]
fn a_name_says_as_much_as_it_likes() {
    for (name, want) in [
        ("gpu", Some("a")),
        ("nvidia/gpu", Some("a")),
        ("nvidia/gpu/a100", Some("c")),
        ("fpga", Some("e")),
        ("amd/gpu", None),
        ("nvidia", None),
        ("nvidia/gpu/a1", None),
    ] {
        let ids = chosen(&[ask(name, 1, &[], &[])]).map(|(ids, _)| ids[0].clone());
        assert_eq!(ids.as_deref(), want, "{name}");
    }
}

#[test]
fn constraints_compare_amounts_with_their_units() {
    for (constraint, want) in [
        ("attr.memory >= 8 GiB", Some("c")),
        ("attr.memory = 4096 MiB", Some("a")),
        ("attr.memory < 1 TiB", Some("a")),
        ("model = a100", Some("c")),
        ("model regexp ^a", Some("c")),
        ("vendor != nvidia", None),
        ("type = gpu", Some("a")),
        // Values of different kinds are neither equal nor different.
        ("attr.memory != 8 GHz", None),
        ("attr.memory > 8", None),
        // One side is missing.
        ("attr.absent != x", Some("a")),
        ("attr.absent = x", None),
        ("attr.ecc is_not_set", Some("c")),
        ("attr.ecc != true", Some("a")),
        ("unheard_of = x", None),
    ] {
        let ids = chosen(&[ask("gpu", 1, &[constraint], &[])]).map(|(ids, _)| ids[0].clone());
        assert_eq!(ids.as_deref(), want, "{constraint}");
    }
}

#[test]
fn instances_can_be_named() {
    for (constraint, count, want) in [
        ("ids set_contains d", 1, Some("d")),
        ("ids set_contains c,d", 2, Some("cd")),
        ("ids set_contains_any b,x", 1, Some("b")),
        ("ids = b", 1, Some("b")),
        ("ids != a", 1, Some("b")),
        ("ids = b", 2, None),
        ("ids set_contains a,c", 1, None),
    ] {
        let ids = chosen(&[ask("gpu", count, &[constraint], &[])]);
        let ids = ids.map(|(ids, _)| ids[0].clone());
        assert_eq!(ids.as_deref(), want, "{constraint}");
    }
}

#[test]
fn the_kind_that_is_liked_best_is_taken_and_says_how_much() {
    let liking = [("attr.memory > 8 GiB", 60), ("model = k80", -40)];
    let (ids, score) = chosen(&[ask("gpu", 1, &[], &liking)]).unwrap();
    assert_eq!((ids[0].as_str(), score), ("c", Some(0.6)));
    let small = ask("gpu", 1, &["model = k80"], &liking);
    let (ids, score) = chosen(&[small]).unwrap();
    assert_eq!((ids[0].as_str(), score), ("a", Some(-0.4)));
    let (_, score) = chosen(&[ask("gpu", 1, &[], &[])]).unwrap();
    assert_eq!(score, None);
}

#[test]
fn a_flexible_request_leaves_the_other_its_instances() {
    let any = ask("gpu", 2, &[], &[("model = k80", 100)]);
    let fixed = ask("nvidia/gpu/k80", 1, &[], &[]);
    let (ids, _) = chosen(&[any.clone(), fixed.clone()]).unwrap();
    assert_eq!(ids, ["cd", "a"]);
    let two = ask("nvidia/gpu/a100", 1, &[], &[]);
    assert_eq!(chosen(&[any, fixed, two]), None, "five of four");
}

/// A request that no node can serve in any way must not take for ever to find out.
#[test]
fn the_search_for_a_way_ends() {
    let mut node = builders::node(1);
    node.devices = (0..12)
        .map(|number| kind(&format!("v/gpu/m{number}"), &["a", "b"], &[]))
        .collect();
    let asks: Vec<_> = (0..30).map(|_| ask("gpu", 1, &[], &[])).collect();
    assert_eq!(choose(&asks.iter().collect::<Vec<_>>(), &node, &Free), None);
}

#[test]
fn a_request_for_any_instance_leaves_a_named_one_to_others() {
    let named = ask("gpu", 1, &["ids set_contains a"], &[]);
    let any = ask("nvidia/gpu/k80", 1, &[], &[]);
    let (ids, _) = chosen(&[any.clone(), named.clone()]).unwrap();
    assert_eq!(ids, ["b", "a"]);
    let (ids, _) = chosen(&[named, any]).unwrap();
    assert_eq!(ids, ["a", "b"]);
}

/// The number of attempts does not multiply with the requests.
#[test]
fn the_last_of_many_requests_gets_the_one_that_it_needs() {
    let mut node = builders::node(1);
    node.devices = (0..12)
        .map(|number| kind(&format!("v/gpu/m{number}"), &["a"], &[]))
        .collect();
    let mut asks: Vec<_> = (0..11).map(|_| ask("gpu", 1, &[], &[])).collect();
    asks.push(ask("v/gpu/m0", 1, &[], &[]));
    let choice = choose(&asks.iter().collect::<Vec<_>>(), &node, &Free).unwrap();
    assert_eq!(choice.chosen[11].kind, 0);
}

/// Every way there is to serve `asks` from the first on, tried.
fn has_way(asks: &[DeviceAsk], node: &Node, taken: &mut Vec<(usize, usize)>) -> bool {
    let Some((ask, rest)) = asks.split_first() else {
        return true;
    };
    (0..node.devices.len()).any(|at| {
        let kind = &node.devices[at];
        let free: Vec<_> = (0..kind.instances.len())
            .filter(|instance| {
                ask.suits(kind)
                    && ask.suits_instance(kind, &kind.instances[*instance].id)
                    && !taken.contains(&(at, *instance))
            })
            .collect();
        let subsets = 0_u32..1 << free.len();
        subsets
            .filter(|subset| subset.count_ones() as usize == ask.count)
            .any(|subset| {
                let before = taken.len();
                let chosen = free.iter().enumerate();
                taken.extend(
                    chosen
                        .filter(|(bit, _)| subset >> bit & 1 == 1)
                        .map(|(_, instance)| (at, *instance)),
                );
                let found = has_way(rest, node, taken);
                taken.truncate(before);
                found
            })
    })
}

proptest! {
    #[test]
    fn a_way_is_found_exactly_where_there_is_one(
        sizes in prop::collection::vec(1_usize..4, 1..4),
        wishes in prop::collection::vec((0_usize..5, 1_u64..3, 0_usize..6), 1..5),
    ) {
        const IDS: [&str; 3] = ["a", "b", "c"];
        let mut node = builders::node(1);
        node.devices = (0..sizes.len())
            .map(|at| kind(&format!("v/gpu/m{at}"), &IDS[..sizes[at]], &[]))
            .collect();
        let asks: Vec<_> = wishes
            .into_iter()
            .map(|(model, count, id)| {
                let name = if model < 3 { format!("v/gpu/m{model}") } else { "gpu".to_owned() };
                let named = IDS.get(id).map(|id| format!("ids set_contains_any {id},a"));
                let constraints: Vec<_> = named.as_deref().into_iter().collect();
                ask(&name, count, &constraints, &[])
            })
            .collect();
        let choice = choose(&asks.iter().collect::<Vec<_>>(), &node, &Free);
        prop_assert_eq!(choice.is_some(), has_way(&asks, &node, &mut Vec::new()));
        let mut taken = std::collections::HashSet::new();
        for (ask, chosen) in asks.iter().zip(choice.into_iter().flat_map(|choice| choice.chosen)) {
            let kind = &node.devices[chosen.kind];
            prop_assert!(ask.suits(kind));
            prop_assert_eq!(chosen.instances.len(), ask.count);
            for instance in chosen.instances {
                prop_assert!(ask.suits_instance(kind, &kind.instances[instance].id));
                prop_assert!(taken.insert((chosen.kind, instance)));
            }
        }
    }
}

#[test]
fn missing_devices_are_counted_in_the_order_of_the_requests() {
    let short = |asks: &[DeviceAsk]| -> Vec<(String, u64)> {
        let asks: Vec<_> = asks.iter().collect();
        let short = short_of(&asks, &node(), &Free).into_iter();
        short.map(|short| (short.name, short.missing)).collect()
    };
    let ask = |name, count| ask(name, count, &[], &[]);
    assert_eq!(short(&[ask("gpu", 2), ask("gpu", 2)]), []);
    // One kind serves a request: two of four do not help a third.
    assert_eq!(short(&[ask("gpu", 3)]), [("gpu".into(), 1)]);
    assert_eq!(
        short(&[ask("gpu", 2), ask("nvidia/gpu/k80", 1), ask("gpu", 2)]),
        [("gpu".into(), 1)],
        "the first leaves the second what it needs, and the third takes what is left"
    );
    assert_eq!(
        short(&[ask("amd/gpu", 2), ask("fpga", 3)]),
        [("amd/gpu".into(), 2), ("fpga".into(), 2)]
    );
}

#[test]
fn a_constraint_that_refuses_every_named_device_is_in_the_reason() {
    let short = |ask: DeviceAsk| short_of(&[&ask], &node(), &Free);
    let memory = "${device.attr.memory} >= 80 GiB";
    let big = ask("gpu", 1, &["attr.memory >= 80 GiB"], &[]);
    let [short_of_big] = short(big.clone()).try_into().unwrap();
    assert_eq!(short_of_big.missing, 0, "without it there are enough");
    let [refusal] = short_of_big.refused.try_into().unwrap();
    assert_eq!(refusal.constraint, memory);
    assert_eq!(refusal.kind, "nvidia/gpu/k80");
    assert_eq!(refusal.facts, [Some("4 GiB".to_owned())]);
    let words = "missing devices: gpu with ${device.attr.memory} >= 80 GiB";
    assert_eq!(fault(&[&big], &node()), words);
    // With it there are too few, and dropping it would not be enough.
    let three = ask("gpu", 3, &["attr.memory >= 80 GiB"], &[]);
    assert_eq!(short(three)[0].missing, 1);
    // One model will do, but has too few: that is no matter of the constraint.
    let three = ask("gpu", 3, &["attr.memory >= 10 GiB"], &[]);
    assert_eq!(fault(&[&three], &node()), "missing devices");
    let found = short(three);
    assert_eq!((found[0].missing, found[0].refused.len()), (1, 0));
    // There is none of the name at all.
    let absent = ask("amd/gpu", 1, &["attr.memory >= 1 GiB"], &[]);
    assert_eq!(fault(&[&absent], &node()), "missing devices");
    // Of several kinds, the one that fails the fewest constraints; an unknown instance fails, too.
    let ecc = ask("gpu", 1, &["attr.ecc = true", "attr.memory >= 10 GiB"], &[]);
    let refused = short(ecc).remove(0).refused;
    assert_eq!(refused.len(), 1);
    assert_eq!(refused[0].kind, "nvidia/gpu/a100");
    assert_eq!(refused[0].facts, [None]);
    let own = ask("gpu", 1, &["ids = z"], &[]);
    assert_eq!(short(own)[0].refused[0].constraint, "${device.ids} = z");
}
