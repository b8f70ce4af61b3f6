//! The kind of device that is cheapest to free. A request is served by one kind, so evicting holders of
//! several kinds would free too little of each.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use model::node::NodeDevice;
use model::{AllocatedDevice, Node};
use placement::Exhausted;
use state::NodeUsage;

use crate::preempt::candidates::Candidate;
use crate::preempt::node_fit::NodeFit;

/// Returns the victims, by position, that free enough of one kind of device; `None`: no kind alone is
/// enough, as when there are several requests.
///
/// Shape: `usage` is the node's usage without those `taken` already. Of all kinds, the one whose
/// victims have the lowest sum of distinct priorities, then the fewest victims, then the first on
/// the node. Source: Nomad's public behaviour, but for the last two.
pub(super) fn cheapest_kind(
    room: &NodeFit<'_>,
    candidates: &[Candidate<'_>],
    taken: &[usize],
    usage: &NodeUsage,
) -> Option<Vec<usize>> {
    let options = kinds(room.node).filter_map(|kind| {
        let free = (0..candidates.len()).filter(|position| !taken.contains(position));
        let holders: Vec<_> = free
            .map(|position| (position, held(&candidates[position], kind)))
            .filter(|(_, instances)| *instances > 0)
            .collect();
        victims_of_kind(room, candidates, holders, usage)
    });
    options.min_by_key(|option| {
        let priorities: BTreeSet<_> = option.iter().map(|one| candidates[*one].priority).collect();
        let sum: u32 = priorities.into_iter().map(u32::from).sum();
        (sum, option.len())
    })
}

fn kinds(node: &Node) -> impl Iterator<Item = &NodeDevice> {
    node.devices.iter()
}

fn is_of(device: &AllocatedDevice, kind: &NodeDevice) -> bool {
    device.vendor == kind.vendor
        && device.device_type == kind.device_type
        && device.name == kind.name
}

/// Returns how many instances of the kind a candidate holds.
fn held(candidate: &Candidate<'_>, kind: &NodeDevice) -> usize {
    let devices = candidate.resources().devices.iter();
    let of_kind = devices.filter(|device| is_of(device, kind));
    of_kind.map(|device| device.instance_ids.len()).sum()
}

fn is_served(room: &NodeFit<'_>, usage: &NodeUsage) -> bool {
    let short = room.with(usage).find().err();
    short != Some(Exhausted::Amount(Exhausted::NO_DEVICES))
}

/// Takes holders until it is enough, the lowest priority first and then the most instances; then
/// releases the unnecessary ones.
fn victims_of_kind(
    room: &NodeFit<'_>,
    candidates: &[Candidate<'_>],
    mut holders: Vec<(usize, usize)>,
    usage: &NodeUsage,
) -> Option<Vec<usize>> {
    holders
        .sort_by_key(|(position, instances)| (candidates[*position].priority, Reverse(*instances)));
    let mut usage = usage.clone();
    let mut option = Vec::new();
    for (position, _) in holders {
        if is_served(room, &usage) {
            break;
        }
        usage.remove(candidates[position].resources());
        option.push(position);
    }
    if !is_served(room, &usage) {
        return None;
    }
    for position in option.clone().into_iter().rev() {
        let resources = candidates[position].resources();
        usage.add(resources);
        if is_served(room, &usage) {
            option.retain(|other| *other != position);
        } else {
            usage.remove(resources);
        }
    }
    Some(option)
}
