//! Choice of victims: one candidate after the other until the ask fits, then without the unnecessary
//! ones.

use std::cmp::Reverse;

use placement::Exhausted;
use state::NodeUsage;

use crate::preempt::candidates::Candidate;
use crate::preempt::cost::{Need, penalty};
use crate::preempt::devices::cheapest_kind;
use crate::preempt::node_fit::NodeFit;
use crate::preempt::preempted::Preempted;

/// Returns the victims among `candidates` by position; `None`: the ask would not fit without all of
/// them.
///
/// Shape: ascending, not empty unless the ask fits anyway. **Invariant**: minimal, the ask does not fit
/// beside any of the victims.
pub(crate) fn victims(
    room: &NodeFit<'_>,
    candidates: &[Candidate<'_>],
    preempted: &Preempted,
) -> Option<Vec<usize>> {
    let mut without_all = room.usage.clone();
    for candidate in candidates {
        without_all.remove(candidate.resources());
    }
    room.with(&without_all).find().ok()?;
    let mut search = VictimSearch {
        room,
        candidates,
        preempted,
        taken: Vec::new(),
        usage: room.usage.clone(),
        need: Need::new(room.requirements.resources),
    };
    while let Err(short) = room.with(&search.usage).find() {
        if short == Exhausted::Amount(Exhausted::NO_DEVICES)
            && let Some(of_kind) = cheapest_kind(room, candidates, &search.taken, &search.usage)
        {
            of_kind.into_iter().for_each(|one| search.take(one));
            continue;
        }
        let next = search.cheapest(|candidate| holds(room, candidate, &short));
        // A candidate is left, as the ask fits without all of them.
        let next = next.or_else(|| search.cheapest(|_| true))?;
        search.take(next);
    }
    search.give_back();
    search.taken.sort_unstable();
    Some(search.taken)
}

/// Tells whether `candidate` holds a resource that the node is short of.
fn holds(room: &NodeFit<'_>, candidate: &Candidate<'_>, short: &Exhausted) -> bool {
    let resources = candidate.resources();
    let mut ports = resources.ports.iter();
    match short {
        Exhausted::Amount("cpu") => resources.total.cpu_mhz > 0,
        Exhausted::Amount("memory") => resources.total.memory_mib > 0,
        Exhausted::Amount("disk") => resources.total.disk_mib > 0,
        Exhausted::Amount(Exhausted::CORES) => !resources.cores.is_empty(),
        Exhausted::Amount(Exhausted::NO_DEVICES | Exhausted::DEVICE_OVERSUBSCRIBED) => {
            !resources.devices.is_empty()
        }
        Exhausted::Amount(_) => true,
        Exhausted::PortCollision { label, port } => {
            let mut asks = room.requirements.ports.iter();
            let ask = asks.find(|ask| ask.label == *label);
            let addresses = ask.map_or(&[][..], |ask| ask.addresses_on(room.node));
            let is_on = |held: &String| addresses.contains(held) || !room.node.has_address(held);
            ports.any(|held| held.value == *port && is_on(&held.host_ip))
        }
        Exhausted::DynamicPorts => {
            let range = room.node.min_dynamic_port..=room.node.max_dynamic_port;
            ports.any(|held| range.contains(&held.value))
        }
        Exhausted::NoAddresses { .. } => false,
    }
}

/// A choice of victims in progress.
struct VictimSearch<'a, 'c> {
    room: &'a NodeFit<'a>,
    candidates: &'a [Candidate<'c>],
    preempted: &'a Preempted,
    /// Positions among the candidates, in the order in which they were taken.
    taken: Vec<usize>,
    /// The node's usage without them.
    usage: NodeUsage,
    /// The resources still missing without them.
    need: Need,
}

impl VictimSearch<'_, '_> {
    /// Returns the cheapest candidate that `suits`, of the lowest priority that has one.
    fn cheapest(&self, suits: impl Fn(&Candidate<'_>) -> bool) -> Option<usize> {
        let mut best = None::<(u8, f64, usize)>;
        for (position, candidate) in self.candidates.iter().enumerate() {
            if best.is_some_and(|(priority, ..)| candidate.priority > priority) {
                break;
            }
            if self.taken.contains(&position) || !suits(candidate) {
                continue;
            }
            let cost = self.need.distance(candidate.resources().total) + self.penalty(candidate);
            if best.is_none_or(|(_, lowest, _)| cost < lowest) {
                best = Some((candidate.priority, cost, position));
            }
        }
        best.map(|(_, _, position)| position)
    }

    /// Returns the penalty for other victims of the candidate's group.
    fn penalty(&self, candidate: &Candidate<'_>) -> f64 {
        if candidate.max_parallel == 0 {
            return 0.0;
        }
        let alloc = &candidate.view.alloc;
        let here = self.taken.iter().filter(|position| {
            let other = &self.candidates[**position].view.alloc;
            other.task_group == alloc.task_group
                && other.job_id == alloc.job_id
                && other.namespace == alloc.namespace
        });
        let here = u32::try_from(here.count()).unwrap_or(u32::MAX);
        let evicted = self.preempted.of_group(candidate.view).saturating_add(here);
        penalty(candidate.max_parallel, evicted)
    }

    fn take(&mut self, position: usize) {
        let resources = self.candidates[position].resources();
        self.usage.remove(resources);
        self.need.less(resources.total);
        self.taken.push(position);
    }

    /// Releases unnecessary victims: the highest priority first, and of one priority the nearest to the
    /// ask, because it can replace several that are far from it.
    fn give_back(&mut self) {
        let ask = Need::new(self.room.requirements.resources);
        let mut order = self.taken.clone();
        order.sort_by(|left, right| {
            let (one, other) = (&self.candidates[*left], &self.candidates[*right]);
            let distance = |candidate: &Candidate<'_>| ask.distance(candidate.resources().total);
            let by_priority = Reverse(one.priority).cmp(&Reverse(other.priority));
            by_priority
                .then_with(|| distance(one).total_cmp(&distance(other)))
                .then_with(|| left.cmp(right))
        });
        for position in order {
            let resources = self.candidates[position].resources();
            self.usage.add(resources);
            if self.room.with(&self.usage).find().is_ok() {
                self.taken.retain(|other| *other != position);
            } else {
                self.usage.remove(resources);
            }
        }
    }
}
