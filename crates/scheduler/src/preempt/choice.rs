//! Chooses victims: one after the other until the ask fits, then without those who were not needed.

use std::cmp::Reverse;

use model::Node;
use placement::{Exhausted, Requirements};
use state::NodeUsage;

use crate::preempt::candidates::Candidate;
use crate::preempt::cost::{Need, penalty};
use crate::preempt::devices::cheapest_kind;
use crate::preempt::preempted::Preempted;
use crate::rank::Given;

/// A node as the plan so far leaves it, and what is asked of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Room<'a> {
    pub(crate) node: &'a Node,
    /// All that is held there; what the plan stops or has evicted is not.
    pub(crate) usage: &'a NodeUsage,
    pub(crate) requirements: &'a Requirements,
}

impl<'a> Room<'a> {
    /// Returns the same node when it holds `usage`.
    pub(crate) fn with(&self, usage: &'a NodeUsage) -> Self {
        Self { usage, ..*self }
    }

    /// Finds room for the ask. Which dynamic ports it gets is drawn once the victims are known.
    ///
    /// # Errors
    /// The first thing that is short.
    pub(crate) fn find(&self) -> Result<Given, Exhausted> {
        Given::on(self.node, self.usage, self.requirements, |_| 0)
    }
}

/// Returns the positions among `candidates` of those who have to go so that the ask fits; `None`: it
/// would not fit with all of them gone.
///
/// Shape: ascending, not empty unless the ask fits anyway. **Invariant**: none of them can be left
/// out, in whatever the node is short of.
pub(crate) fn victims(
    room: &Room<'_>,
    candidates: &[Candidate<'_>],
    preempted: &Preempted,
) -> Option<Vec<usize>> {
    let mut without_all = room.usage.clone();
    for candidate in candidates {
        without_all.remove(candidate.resources());
    }
    room.with(&without_all).find().ok()?;
    let mut choice = Choice {
        room,
        candidates,
        preempted,
        taken: Vec::new(),
        usage: room.usage.clone(),
        need: Need::new(room.requirements.resources),
    };
    while let Err(short) = room.with(&choice.usage).find() {
        if short == Exhausted::Amount(Exhausted::NO_DEVICES)
            && let Some(of_kind) = cheapest_kind(room, candidates, &choice.taken, &choice.usage)
        {
            of_kind.into_iter().for_each(|one| choice.take(one));
            continue;
        }
        let next = choice.cheapest(|candidate| holds(room, candidate, &short));
        // Somebody is left, as it fits without all of them.
        let next = next.or_else(|| choice.cheapest(|_| true))?;
        choice.take(next);
    }
    choice.give_back();
    choice.taken.sort_unstable();
    Some(choice.taken)
}

/// Tells whether evicting `candidate` would give the node some of what it is short of.
fn holds(room: &Room<'_>, candidate: &Candidate<'_>, short: &Exhausted) -> bool {
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
            ports.any(|held| held.value == *port && addresses.contains(&held.host_ip))
        }
        Exhausted::DynamicPorts => {
            let range = room.node.min_dynamic_port..=room.node.max_dynamic_port;
            ports.any(|held| range.contains(&held.value))
        }
        Exhausted::NoAddresses { .. } => false,
    }
}

/// Victims in the making.
struct Choice<'a, 'c> {
    room: &'a Room<'a>,
    candidates: &'a [Candidate<'c>],
    preempted: &'a Preempted,
    /// Positions among the candidates, in the order in which they were taken.
    taken: Vec<usize>,
    /// What is held with them gone.
    usage: NodeUsage,
    /// What they leave to be asked for.
    need: Need,
}

impl Choice<'_, '_> {
    /// Returns who costs least of the lowest priority that has one who `suits`.
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

    /// Returns what it costs that others of the candidate's group go as well.
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

    /// Spares everybody without whom it fits as well: the most important first, and of one priority
    /// who is nearest to the ask, because several far from it were taken for a reason.
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
