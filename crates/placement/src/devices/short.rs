//! What a node lacks of the devices that a group asks for, for people.

use std::borrow::Cow;
use std::cmp::Reverse;

use model::Node;
use model::node::NodeDevice;

use crate::devices::check::Facts;
use crate::devices::{DeviceAsk, choose};
use crate::exclusive::{DeviceRefusal, DeviceShortage, Holds};

/// What is said of a node that lacks devices, when it is not about a constraint. Source: Nomad.
const MISSING: &str = "missing devices";

/// Returns which of `asks` the node cannot serve beside what `holds` says is taken, and how many
/// instances of one kind each lacks.
///
/// Shape: in the order of the requests; empty if there is a way to serve all. Who comes first is
/// served first, and one that is short still takes what there is, so the sum is what has to come free
/// or to be asked for less. Where the node has what a request names, and only constraints are in the
/// way, those are told, and instances count as missing that would be once they are dropped.
pub(crate) fn short_of(
    asks: &[&DeviceAsk],
    node: &Node,
    holds: &impl Holds,
) -> Vec<DeviceShortage> {
    let mut served = Vec::<DeviceAsk>::new();
    let mut short = Vec::new();
    for ask in asks {
        let refused = refusals(ask, node);
        let loose = ask.loosened(ask.count, &refused);
        let served_with = |count: usize| {
            let fewer = loose.loosened(count, &[]);
            let all: Vec<_> = served.iter().chain([&fewer]).collect();
            choose(&all, node, holds).is_some().then_some(fewer)
        };
        let kinds = node.devices.iter().filter(|kind| loose.suits(kind));
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

/// Returns why a node that has not enough devices is left out, as metrics say it.
pub(crate) fn fault(asks: &[&DeviceAsk], node: &Node) -> Cow<'static, str> {
    let mut refused = asks.iter().map(|ask| (&ask.text, refusals(ask, node)));
    let refused = refused.find_map(|(name, refused)| Some((name, refused.into_iter().next()?)));
    match refused {
        Some((name, refusal)) => Cow::Owned(for_constraint(name, &refusal)),
        None => Cow::Borrowed(MISSING),
    }
}

fn for_constraint(name: &str, refusal: &DeviceRefusal) -> String {
    format!("{MISSING}: {name} with {}", refusal.constraint)
}

/// Returns the same of what [`short_of`] found.
pub(crate) fn reason(short: &[DeviceShortage]) -> String {
    let mut refused = short.iter();
    let refused = refused.find_map(|short| Some((&short.name, short.refused.first()?)));
    refused.map_or(MISSING.to_owned(), |(name, refusal)| {
        for_constraint(name, refusal)
    })
}

/// Returns the constraints that keep a request from everything that the node has of its name; empty
/// if some of it will do, or if there is none.
///
/// Of several kinds the one is told of that fewest constraints refuse; of those, the largest.
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
