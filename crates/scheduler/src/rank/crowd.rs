//! Nodes that have no room, but would if others made way; looked at only when no other node has room.
//!
//! Finding out who would have to go costs a look at every allocation of a node. So nodes stand in the
//! order of what they could score at best, which their shares by priority tell, and are looked at until
//! one is as good as the next could be.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use model::{Algorithm, AllocMetric};
use state::{AllocView, NodeRow};

use crate::draw::Draw;
use crate::preempt::{Candidate, Claim, Preempted, Room, preemption_score, victims};
use crate::rank::explain::{self, RUNNERS_UP_MAX};
use crate::rank::given::Given;
use crate::rank::score::Parts;
use crate::rank::search::{Found, Search, Wish};

/// How many nodes are compared for one allocation. With so many good ones, another hundred are no
/// better, and looks take time. As many as Nomad compares where it compares most.
const COMPARED_MAX: usize = 100;

/// The nodes without room.
#[derive(Clone, Debug)]
pub(crate) struct Crowd {
    claim: Claim,
    /// `None`: nobody has asked yet.
    prospects: Option<BinaryHeap<Prospect>>,
    /// Positions of nodes that have changed since somebody asked.
    touched: Vec<usize>,
    /// How often somebody has asked.
    round: u32,
    /// What nodes were short of when somebody asked first: every node is looked at for it.
    short: Option<AllocMetric>,
}

impl Crowd {
    pub(crate) fn new(claim: Claim) -> Self {
        Self {
            claim,
            prospects: None,
            touched: Vec::new(),
            round: 0,
            short: None,
        }
    }

    /// Notes that a node has changed.
    pub(crate) fn touch(&mut self, position: usize) {
        if self.prospects.is_some() {
            self.touched.push(position);
        }
    }
}

/// A node, and what it scores at best.
#[derive(Clone, Copy, Debug)]
struct Prospect {
    score: f64,
    node: u32,
    /// The node's count of changes when it was scored.
    changes: u32,
    /// The round in which the score was what it is, and not only the best it could be.
    round: u32,
}

impl Ord for Prospect {
    fn cmp(&self, other: &Self) -> Ordering {
        self.score
            .total_cmp(&other.score)
            .then_with(|| other.node.cmp(&self.node))
    }
}

impl PartialOrd for Prospect {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Prospect {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Prospect {}

/// What was found out about a node.
struct Look<'a> {
    position: usize,
    victims: Vec<&'a AllocView>,
    parts: Parts,
    score: f64,
}

impl<'a> Search<'a, '_> {
    /// Returns the best node on which others make way for one more allocation, if they have to make
    /// way at all.
    ///
    /// The caller evicts them and then takes the node, as after [`Self::find`].
    pub(crate) fn find_crowded(
        &mut self,
        wish: &Wish,
        preempted: &Preempted,
        draw: &mut Draw,
    ) -> Option<Found<'a>> {
        let mut crowd = self.crowd.take()?;
        let mut found = self.find_in(&mut crowd, wish, preempted, draw);
        if let Some(found) = &mut found {
            let short = crowd.short.get_or_insert_with(|| self.explain());
            found.metric.nodes_filtered = short.nodes_filtered;
            found.metric.nodes_exhausted = short.nodes_exhausted;
            found.metric.dimension_exhausted = short.dimension_exhausted.clone();
        }
        self.crowd = Some(crowd);
        found
    }

    fn find_in(
        &mut self,
        crowd: &mut Crowd,
        wish: &Wish,
        preempted: &Preempted,
        draw: &mut Draw,
    ) -> Option<Found<'a>> {
        let preferred = wish.preferred.and_then(|id| self.cluster.position(id));
        let preferred = preferred.filter(|position| {
            self.places[*position].is_somewhere() && self.has_own_volumes(*position)
        });
        if let Some(look) = preferred.and_then(|node| self.look(&crowd.claim, node, preempted)) {
            return self.settle(look, &[], draw);
        }
        self.prepare(crowd);
        let (mut looks, is_penalised) = self.compare(crowd, wish, preempted);
        looks.sort_by(|left, right| right.score.total_cmp(&left.score));
        let mut looks = looks.into_iter();
        let best = looks.next().or(is_penalised)?;
        self.settle(best, &looks.collect::<Vec<_>>(), draw)
    }

    /// Puts the nodes in order: all of them, or those that have changed.
    fn prepare(&self, crowd: &mut Crowd) {
        crowd.round += 1;
        // What a spread says changes everywhere with each allocation.
        if !self.spreads.is_empty() {
            crowd.prospects = None;
        }
        let mut touched = std::mem::take(&mut crowd.touched);
        match &mut crowd.prospects {
            Some(prospects) => {
                touched.sort_unstable();
                touched.dedup();
                let rows = touched.into_iter().map(|node| {
                    let row = self.cluster.row(node);
                    (node, row)
                });
                let fresh = rows.filter_map(|(node, row)| self.prospect(&crowd.claim, node, row));
                prospects.extend(fresh);
            }
            None => {
                let claim = &crowd.claim;
                let all = self.feasible();
                let all = all.filter_map(|(node, row)| self.prospect(claim, node, row));
                crowd.prospects = Some(all.collect());
            }
        }
    }

    /// Returns what a node could score at best; `None`: it would have no room whoever made way.
    fn prospect(&self, claim: &Claim, position: usize, row: &NodeRow) -> Option<Prospect> {
        let ask = self.requirements.resources;
        let after = self.cluster.used(position).plus(ask);
        let mut left = after;
        let mut highest = None;
        for share in claim.shares(self.cluster.snapshot, row.id) {
            if highest.is_none() || left.exceeds(row.available).is_some() {
                highest = Some(share.priority);
            }
            left = left.minus(share.total);
        }
        // No set of victims is less important than one alone of the priority that it takes.
        let highest = highest.filter(|_| left.max(ask).exceeds(row.available).is_none())?;
        // As full, or as empty, as it could be left.
        let best = match self.algorithm {
            Algorithm::Binpack => after.min(row.available),
            Algorithm::Spread => left.max(ask),
        };
        let parts = Parts {
            preemption: Some(preemption_score([highest])),
            // The devices that it would like best.
            ..self.parts_with(
                position,
                row,
                best,
                self.requirements
                    .exclusive
                    .has_device_affinities()
                    .then_some(1.0),
            )
        };
        Some(Prospect {
            score: self.score(row, &parts),
            node: u32::try_from(position).ok()?,
            changes: self.places[position].changes,
            round: 0,
        })
    }

    fn score(&self, row: &NodeRow, parts: &Parts) -> f64 {
        parts.score() + self.cluster.lot(row.id) * self.cluster.near_tie
    }

    /// Looks at the most promising nodes; returns those where somebody can make way, in no order, with
    /// the best of the others: those on which a predecessor has failed.
    fn compare(
        &self,
        crowd: &mut Crowd,
        wish: &Wish,
        preempted: &Preempted,
    ) -> (Vec<Look<'a>>, Option<Look<'a>>) {
        let mut looks = Vec::new();
        let mut penalised = None::<Look<'a>>;
        let mut aside = Vec::new();
        let Some(prospects) = &mut crowd.prospects else {
            return (looks, penalised);
        };
        while let Some(top) = prospects.pop() {
            let position = top.node as usize;
            if self.places[position].changes != top.changes {
                // It is in its new place already, if it has one.
                continue;
            }
            if top.round == crowd.round {
                // The best of those that were looked at, and no other can be better.
                aside.push(top);
                break;
            }
            if self.ruled_out_at(position) {
                aside.push(top);
                continue;
            }
            let Some(look) = self.look(&crowd.claim, position, preempted) else {
                // Only a change of the node itself helps.
                continue;
            };
            if wish.penalised.contains(&self.cluster.row(position).id) {
                aside.push(top);
                if penalised
                    .as_ref()
                    .is_none_or(|best| look.score > best.score)
                {
                    penalised = Some(look);
                }
                continue;
            }
            prospects.push(Prospect {
                score: look.score,
                round: crowd.round,
                ..top
            });
            looks.push(look);
            if looks.len() >= COMPARED_MAX {
                break;
            }
        }
        prospects.extend(aside);
        (looks, penalised)
    }

    fn ruled_out_at(&self, position: usize) -> bool {
        self.is_next_to_another(position)
            || self.limit_at(position).is_some()
            || !self.volumes_serve(position)
    }

    /// Finds out who would have to make way on a node.
    fn look(&self, claim: &Claim, position: usize, preempted: &Preempted) -> Option<Look<'a>> {
        let (snapshot, table) = (self.cluster.snapshot, self.cluster.table);
        if self.ruled_out_at(position) {
            return None;
        }
        let row = table.row(position);
        let candidates = claim.candidates(snapshot, row.id, preempted);
        let usage = self.cluster.usage(position);
        let room = Room {
            node: &table.node(position)?.value,
            usage: &usage,
            requirements: self.requirements,
        };
        let chosen = victims(&room, &candidates, preempted)?;
        if chosen.is_empty() {
            return None;
        }
        let chosen = chosen.into_iter().map(|position| candidates[position]);
        let chosen: Vec<_> = chosen.collect();
        let parts = self.parts_without(position, &room, &chosen)?;
        Some(Look {
            position,
            victims: chosen.iter().map(|candidate| candidate.view).collect(),
            score: self.score(row, &parts),
            parts,
        })
    }

    /// Returns how good a node is for one more once `victims` have gone; `None` when it has no room
    /// even then.
    pub(crate) fn parts_without(
        &self,
        position: usize,
        room: &Room<'_>,
        victims: &[Candidate<'a>],
    ) -> Option<Parts> {
        let mut without = room.usage.clone();
        for victim in victims {
            without.remove(victim.resources());
        }
        let given = room.with(&without).find().ok()?;
        let after = without.total.plus(given.total(self.requirements));
        let priorities = victims.iter().map(|victim| victim.priority);
        let row = self.cluster.row(position);
        Some(Parts {
            preemption: Some(preemption_score(priorities)),
            ..self.parts_with(position, row, after, given.exclusive.device_score)
        })
    }

    /// Gives a node to an allocation, with what it gets there.
    fn settle(
        &mut self,
        look: Look<'a>,
        others: &[Look<'a>],
        draw: &mut Draw,
    ) -> Option<Found<'a>> {
        let table = self.cluster.table;
        let mut usage = self.cluster.usage(look.position);
        for victim in &look.victims {
            usage.remove(&victim.alloc.resources);
        }
        let node = &table.node(look.position)?.value;
        let given = Given::on(node, &usage, self.requirements, |bound| draw.below(bound));
        let given = given.ok()?;
        let mut metric = self.groundwork.placed(&look.parts);
        if !self.has_told_runners_up {
            self.has_told_runners_up = true;
            let others = others.iter().take(RUNNERS_UP_MAX);
            metric.runners_up = others
                .map(|other| explain::node_score(table.row(other.position).id, &other.parts))
                .collect();
        }
        Some(Found {
            position: look.position,
            node_id: node.id,
            given,
            metric,
            victims: look.victims,
        })
    }

    /// Counts what those give up that make way on a node; the node is to be taken next.
    pub(crate) fn evict(&mut self, victims: &[&AllocView]) {
        for victim in victims {
            let alloc = &victim.alloc;
            self.cluster.release(alloc.node_id, &alloc.resources);
        }
    }
}
