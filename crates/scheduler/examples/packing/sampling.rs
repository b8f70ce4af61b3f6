//! Placing by sampling, as Nomad is publicly known to do it, for comparison.
//!
//! Nodes are shuffled once an evaluation. A placement asks them in turn, going on where the last
//! one stopped, until a few have room; the best of those is taken, the first of equals. Up to three
//! that score 0 or less are set aside while looking for better ones.

use std::collections::BTreeMap;

use model::{ComparableResources, Job, JobKey, Node};
use placement::Requirements;
use rand::SeedableRng as _;
use rand::rngs::StdRng;
use rand::seq::SliceRandom as _;

use crate::workload::{Used, is_batch};

const SET_ASIDE_MAX: usize = 3;

/// The number of nodes with room that are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Limit {
    /// Two for batch work, the logarithm of the number of nodes for services.
    ByType,
    Two,
}

/// A cluster with its placed allocations.
pub(crate) struct Sampling<'a> {
    nodes: &'a [Node],
    limit: Limit,
    used: Vec<ComparableResources>,
    /// Job → the resources of one of its allocations, and the nodes that they are on.
    placed: BTreeMap<JobKey, (ComparableResources, Vec<usize>)>,
    rng: StdRng,
}

impl<'a> Sampling<'a> {
    pub(crate) fn new(nodes: &'a [Node], limit: Limit, seed: u64) -> Self {
        Self {
            nodes,
            limit,
            used: vec![ComparableResources::default(); nodes.len()],
            placed: BTreeMap::new(),
            rng: StdRng::seed_from_u64(seed),
        }
    }

    fn limit(&self, job: &Job) -> usize {
        if self.limit == Limit::Two || is_batch(job) {
            return 2;
        }
        let logarithm = self.nodes.len().next_power_of_two().trailing_zeros();
        (logarithm as usize).max(2)
    }

    /// Places the allocations of a job; returns how many have a place.
    pub(crate) fn arrive(&mut self, job: &Job) -> u32 {
        let group = &job.task_groups[0];
        let requirements = Requirements::new(job, group);
        let is_feasible = |node: &Node| {
            requirements.class_passes(node)
                && requirements.check_shared(node).is_ok()
                && requirements.check_unique(node).is_ok()
        };
        let mut order: Vec<_> = (0..self.nodes.len()).collect();
        order.shuffle(&mut self.rng);
        let limit = self.limit(job);
        let mut offset = 0;
        let mut on = Vec::new();
        for _ in 0..group.count {
            let mut best: Option<(f64, usize)> = None;
            let mut compared = 0;
            let mut aside = Vec::new();
            for step in 0..order.len() {
                let node = order[(offset + step) % order.len()];
                let collisions = on.iter().filter(|other| **other == node).count();
                if requirements.distinct_hosts.is_some() && collisions > 0
                    || !is_feasible(&self.nodes[node])
                {
                    continue;
                }
                let Some(score) = self.score(node, requirements.resources, collisions, group.count)
                else {
                    continue;
                };
                if score <= 0.0 && aside.len() < SET_ASIDE_MAX {
                    aside.push((score, node));
                    continue;
                }
                if best.is_none_or(|(other, _)| score > other) {
                    best = Some((score, node));
                }
                compared += 1;
                if compared == limit {
                    offset = (offset + step + 1) % order.len();
                    break;
                }
            }
            // A round without enough of them has come back to where it began.
            if compared < limit {
                for (score, node) in aside.into_iter().take(limit - compared) {
                    if best.is_none_or(|(other, _)| score > other) {
                        best = Some((score, node));
                    }
                }
            }
            let Some((_, node)) = best else { break };
            self.used[node] = self.used[node].plus(requirements.resources);
            on.push(node);
        }
        let placed = u32::try_from(on.len()).expect("a count is a u32");
        self.placed.insert(job.key(), (requirements.resources, on));
        placed
    }

    /// Returns the score of a node with one more; `None`: it has no room.
    fn score(
        &self,
        node: usize,
        ask: ComparableResources,
        collisions: usize,
        count: u32,
    ) -> Option<f64> {
        let available = self.nodes[node].available();
        let after = self.used[node].plus(ask);
        if after.exceeds(available).is_some() {
            return None;
        }
        let fit = fit(available, after);
        if collisions == 0 {
            return Some(fit);
        }
        #[expect(clippy::cast_precision_loss, reason = "a few dozen allocations")]
        let anti_affinity = -(collisions as f64 + 1.0) / f64::from(count);
        Some(f64::midpoint(fit, anti_affinity))
    }

    pub(crate) fn depart(&mut self, job: &JobKey) {
        if let Some((held, on)) = self.placed.remove(job) {
            for node in on {
                self.used[node] = self.used[node].minus(held);
            }
        }
    }

    pub(crate) fn used(&self) -> Used {
        let nothing = ComparableResources::default();
        let nodes = self.nodes.iter().zip(&self.used);
        let used = nodes.filter(|(_, used)| **used != nothing);
        Used::count(used.map(|(node, _)| node))
    }
}

/// The "best fit" score of cpu and memory. The scheduler's own (`rank::score::fit`) gives the same value as
/// long as no disk is fuller than cpu or memory, and here none is. It is private to the crate, and this
/// example compares the scheduler with another method, which must not change with the scheduler's score.
#[expect(clippy::cast_precision_loss, reason = "amounts are far below 2^52")]
fn fit(available: ComparableResources, after: ComparableResources) -> f64 {
    let power = |used: u64, size: u64| 10_f64.powf(1.0 - used as f64 / size as f64);
    let powers =
        power(after.cpu_mhz, available.cpu_mhz) + power(after.memory_mib, available.memory_mib);
    (20.0 - powers).clamp(0.0, 18.0) / 18.0
}
