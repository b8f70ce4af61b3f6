//! How many devices a node is short of, for people.

use model::Node;

use crate::devices::{DeviceAsk, choose};
use crate::exclusive::{DeviceShortage, Holds};

/// Returns which of `asks` the node cannot serve beside what `holds` says is taken, and how many
/// instances of one kind each lacks.
///
/// Shape: in the order of the requests; empty if there is a way to serve all. Who comes first is
/// served first, and one that is short still takes what there is, so the sum is what has to come free
/// or to be asked for less.
pub(crate) fn short_of(
    asks: &[&DeviceAsk],
    node: &Node,
    holds: &impl Holds,
) -> Vec<DeviceShortage> {
    let mut served = Vec::<DeviceAsk>::new();
    let mut short = Vec::new();
    for ask in asks {
        let served_with = |count: usize| {
            let fewer = DeviceAsk {
                count,
                ..(*ask).clone()
            };
            let all: Vec<_> = served.iter().chain([&fewer]).collect();
            choose(&all, node, holds).is_some().then_some(fewer)
        };
        let kinds = node.devices.iter().filter(|kind| ask.suits(kind));
        let largest = kinds.map(|kind| kind.instances.len()).max().unwrap_or(0);
        let counts = (0..=largest.min(ask.count)).rev();
        let most = counts.filter(|count| *count > 0).find_map(served_with);
        let missing = ask.count - most.as_ref().map_or(0, |most| most.count);
        if missing > 0 {
            short.push(DeviceShortage {
                name: ask.text.clone(),
                missing: u64::try_from(missing).unwrap_or(u64::MAX),
            });
        }
        served.extend(most);
    }
    short
}
