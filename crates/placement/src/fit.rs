//! Fit: amounts, ports, cores and devices against what a node holds.

use model::{AllocatedResources, ComparableResources, Node};
use state::NodeUsage;

use crate::dedicated;
use crate::exhausted::Exhausted;
use crate::ports::check_given;

/// Checks whether `ask` fits beside `usage` in `available`.
///
/// # Errors
/// The first dimension that is short: cpu, memory, disk.
pub fn fits(
    available: ComparableResources,
    usage: ComparableResources,
    ask: ComparableResources,
) -> Result<(), Exhausted> {
    match usage.plus(ask).exceeds(available) {
        Some(dimension) => Err(Exhausted::Amount(dimension)),
        None => Ok(()),
    }
}

/// Checks whether `node`, which holds `usage`, can hold `added` after releasing `removed`.
///
/// Shape: `removed` are all counted in `usage`; ports of `added` are checked against the node's
/// reserved ones, those that stay, and each other. Earlier holdings count without being checked: a
/// node that has shrunk takes nothing more.
///
/// # Errors
/// The first dimension that is short: ports, cores, devices, then allocations, cpu, memory,
/// disk.
pub fn check_change<'a>(
    node: &Node,
    usage: &NodeUsage,
    removed: impl IntoIterator<Item = &'a AllocatedResources>,
    added: impl IntoIterator<Item = &'a AllocatedResources>,
) -> Result<(), Exhausted> {
    let mut after = usage.clone();
    for resources in removed {
        after.remove(resources);
    }
    for resources in added {
        check_given(node, &after.ports, &resources.ports)?;
        dedicated::check(node, usage, &after, resources)?;
        after.add(resources);
    }
    if node.max_allocs > 0 && after.alloc_count > node.max_allocs {
        return Err(Exhausted::Amount(Exhausted::MAX_ALLOCS));
    }
    fits(
        node.available(),
        after.total,
        ComparableResources::default(),
    )
}

#[cfg(test)]
mod tests {
    use model::AllocatedPort;
    use proptest::prelude::*;
    use test_kit::builders;

    use super::*;

    fn resources(cpu_mhz: u64, ports: &[u16]) -> AllocatedResources {
        AllocatedResources {
            total: ComparableResources {
                cpu_mhz,
                memory_mib: 1,
                disk_mib: 1,
            },
            ports: ports
                .iter()
                .map(|port| AllocatedPort {
                    label: "http".into(),
                    value: *port,
                    to: *port,
                    host_ip: "127.0.0.1".into(),
                    ignore_collision: false,
                    task: String::new(),
                })
                .collect(),
            ..AllocatedResources::default()
        }
    }

    fn holding(allocs: &[AllocatedResources]) -> NodeUsage {
        let mut usage = NodeUsage::default();
        for resources in allocs {
            usage.add(resources);
        }
        usage
    }

    #[test]
    fn the_first_short_dimension_is_named() {
        let node = builders::node(1);
        let ask = |cpu_mhz, memory_mib, disk_mib| {
            let ask = ComparableResources {
                cpu_mhz,
                memory_mib,
                disk_mib,
            };
            let answer = fits(node.available(), ComparableResources::default(), ask);
            answer.map_err(|exhausted| exhausted.to_string())
        };
        assert_eq!(ask(4_000, 8_192, 100_000), Ok(()));
        assert_eq!(ask(4_001, 8_193, 100_001), Err("cpu".to_owned()));
        assert_eq!(ask(4_000, 8_193, 100_001), Err("memory".to_owned()));
        assert_eq!(ask(4_000, 8_192, 100_001), Err("disk".to_owned()));
    }

    #[test]
    fn released_resources_can_be_taken() {
        let node = builders::node(1);
        let old = resources(4_000, &[8_080]);
        let new = resources(3_000, &[8_080]);
        let usage = holding(std::slice::from_ref(&old));
        assert!(check_change(&node, &usage, [], [&new]).is_err());
        assert_eq!(check_change(&node, &usage, [&old], [&new]), Ok(()));
    }

    #[test]
    fn a_port_is_given_out_once() {
        let mut node = builders::node(1);
        node.reserved_ports.push(22);
        let usage = holding(&[resources(1, &[8_080])]);
        for (added, want) in [
            (vec![resources(1, &[8_081])], None),
            (vec![resources(1, &[8_080])], Some(8_080)),
            (vec![resources(1, &[22])], Some(22)),
            (
                vec![resources(1, &[9_000]), resources(1, &[9_000])],
                Some(9_000),
            ),
            (vec![resources(1, &[9_000, 9_000])], Some(9_000)),
        ] {
            let answer = check_change(&node, &usage, [], &added);
            let collision = want.map(|port| Exhausted::PortCollision {
                label: "http".into(),
                port,
            });
            assert_eq!(answer.err(), collision, "{added:?}");
        }
    }

    #[test]
    fn a_node_that_shrank_takes_nothing_more() {
        let mut node = builders::node(1);
        let usage = holding(&[resources(3_000, &[])]);
        node.resources.cpu_mhz = 2_000;
        let answer = check_change(&node, &usage, [], [&resources(0, &[])]);
        assert_eq!(answer, Err(Exhausted::Amount("cpu")));
    }

    proptest! {
        /// Accepted changes are within the node's resources, and refused ones would exceed them.
        #[test]
        fn a_change_is_accepted_exactly_when_the_sum_fits(
            held in prop::collection::vec(0_u64..1_500, 0..4),
            gone in prop::collection::vec(any::<bool>(), 4),
            added in prop::collection::vec(0_u64..1_500, 0..4),
        ) {
            let node = builders::node(1);
            let held: Vec<_> = held.into_iter().map(|cpu| resources(cpu, &[])).collect();
            let usage = holding(&held);
            let (removed, kept): (Vec<_>, Vec<_>) =
                held.iter().zip(&gone).partition(|(_, gone)| **gone);
            let added: Vec<_> = added.into_iter().map(|cpu| resources(cpu, &[])).collect();
            let sum: u64 = kept.iter().map(|(kept, _)| kept.total.cpu_mhz).sum::<u64>()
                + added.iter().map(|added| added.total.cpu_mhz).sum::<u64>();
            let answer = check_change(&node, &usage, removed.into_iter().map(|(r, _)| r), &added);
            prop_assert_eq!(answer.is_ok(), sum <= 4_000);
        }
    }
}
