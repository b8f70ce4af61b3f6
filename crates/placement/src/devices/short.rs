//! Devices that a node lacks for the requests of a group, for explanations.

use std::borrow::Cow;
use std::cmp::Reverse;

use model::Node;
use model::node::NodeDevice;

use crate::devices::ask::DeviceAsk;
use crate::devices::check::Facts;
use crate::devices::choose::choose;
use crate::devices::shortage::{DeviceRefusal, DeviceShortage, MISSING, for_constraint};
use crate::holds::Holds;

/// Returns the requests that the node cannot serve beside the instances that `holds` reports as
/// held, with the number of missing instances of one kind.
///
/// Shape: in the order of the requests; empty if all can be served. Requests are served in order,
/// and a short one still takes the free instances, so the sum is the number to free or to request
/// less. Where only constraints rule out the named devices, these are returned, and missing
/// instances are counted without them.
pub(crate) fn short_of(
    asks: &[&DeviceAsk],
    node: &Node,
    holds: &impl Holds,
) -> Vec<DeviceShortage> {
    let mut served = Vec::<DeviceAsk>::new();
    let mut short = Vec::new();
    for ask in asks {
        let refused = refusals(ask, node);
        let relaxed = ask.relaxed(ask.count, &refused);
        let served_with = |count: usize| {
            let fewer = relaxed.relaxed(count, &[]);
            let all: Vec<_> = served.iter().chain([&fewer]).collect();
            choose(&all, node, holds).is_some().then_some(fewer)
        };
        let kinds = node.devices.iter().filter(|kind| relaxed.suits(kind));
        let largest = kinds.map(|kind| kind.instances.len()).max().unwrap_or(0);
        let counts = (0..=largest.min(ask.count)).rev();
        let most = counts.filter(|count| *count > 0).find_map(served_with);
        let missing = ask.count - most.as_ref().map_or(0, |most| most.count);
        if missing > 0 || !refused.is_empty() {
            short.push(DeviceShortage {
                name: ask.text.clone(),
                asked: u64::try_from(ask.count).unwrap_or(u64::MAX),
                missing: u64::try_from(missing).unwrap_or(u64::MAX),
                is_constrained: ask.is_constrained(),
                refused,
            });
        }
        served.extend(most);
    }
    short
}

/// Returns the reason in metrics of a node without enough devices.
pub(crate) fn fault(asks: &[&DeviceAsk], node: &Node) -> Cow<'static, str> {
    let mut refused = asks.iter().map(|ask| (&ask.text, refusals(ask, node)));
    let refused = refused.find_map(|(name, refused)| Some((name, refused.into_iter().next()?)));
    match refused {
        Some((name, refusal)) => Cow::Owned(for_constraint(name, &refusal)),
        None => Cow::Borrowed(MISSING),
    }
}

/// Returns the constraints that rule out all devices of the requested name; empty if some are suitable
/// or there are none.
///
/// Of several kinds, the one that fails the fewest constraints; of those, the largest.
fn refusals(ask: &DeviceAsk, node: &Node) -> Vec<DeviceRefusal> {
    if !ask.is_constrained() {
        return Vec::new();
    }
    let named = node.devices.iter().filter(|kind| ask.name.matches(kind));
    let asked = named.map(|kind| (kind, ask.refusing(kind)));
    let nearest =
        asked.min_by_key(|(kind, refusing)| (refusing.len(), Reverse(kind.instances.len())));
    let Some((kind, refusing)) = nearest else {
        return Vec::new();
    };
    let facts = Facts::of_kind(kind);
    let refusals = refusing.into_iter().map(|check| DeviceRefusal {
        constraint: check.text().to_owned(),
        kind: full_name(kind),
        facts: check.facts(&facts),
    });
    refusals.collect()
}

fn full_name(kind: &NodeDevice) -> String {
    let parts = [&kind.vendor, &kind.device_type, &kind.name];
    let parts = parts.into_iter().filter(|part| !part.is_empty());
    parts.map(String::as_str).collect::<Vec<_>>().join("/")
}
