//! Search with preemption: the best full node after evictions.

use model::Algorithm;
use state::{AllocView, NodeRow};

use crate::preempt::candidates::{Candidate, Preemptor};
use crate::preempt::choice::victims;
use crate::preempt::cost::preemption_score;
use crate::preempt::node_fit::NodeFit;
use crate::preempt::preempted::Preempted;
use crate::rank::ask::{AllocAsk, Found};
use crate::rank::assignment::Assignment;
use crate::rank::metrics::{RUNNERS_UP_MAX, node_score};
use crate::rank::preemption_candidates::{BoundedCandidate, PreemptionCandidates};
use crate::rank::score::Parts;
use crate::rank::search::Search;
use crate::run_rng::RunRng;

/// The maximum number of nodes compared for one allocation: each costs a choice of victims, and
/// another hundred would hardly be better. Nomad compares at most as many.
const COMPARED_MAX: usize = 100;

/// A full node with its victims and its exact score.
struct Evaluated<'a> {
    position: usize,
    victims: Vec<&'a AllocView>,
    parts: Parts,
    score: f64,
}

impl<'a> Search<'a, '_> {
    /// Returns the best node for one more allocation after evictions; `None` if preemption is disabled or
    /// does not help.
    ///
    /// The caller evicts the victims and then takes the node, as after [`Self::find`].
    pub(crate) fn find_with_preemption(
        &mut self,
        alloc_ask: &AllocAsk,
        preempted: &Preempted,
        rng: &mut RunRng,
    ) -> Option<Found<'a>> {
        let mut preemption = self.preemption.take()?;
        let mut found = self.find_in(&mut preemption, alloc_ask, preempted, rng);
        if let Some(found) = &mut found {
            let short = preemption
                .short
                .get_or_insert_with(|| self.failure_metric());
            found.metric.nodes_filtered = short.nodes_filtered;
            found.metric.nodes_exhausted = short.nodes_exhausted;
            found.metric.dimension_exhausted = short.dimension_exhausted.clone();
        }
        self.preemption = Some(preemption);
        found
    }

    fn find_in(
        &mut self,
        preemption: &mut PreemptionCandidates,
        alloc_ask: &AllocAsk,
        preempted: &Preempted,
        rng: &mut RunRng,
    ) -> Option<Found<'a>> {
        let preferred = alloc_ask.preferred.and_then(|id| self.cluster.position(id));
        let preferred = preferred.filter(|position| {
            self.bucket_refs[*position].has_bucket() && self.has_own_volumes(*position)
        });
        if let Some(candidate) =
            preferred.and_then(|node| self.evaluate(&preemption.preemptor, node, preempted))
        {
            return self.assign(candidate, &[], rng);
        }
        self.prepare(preemption);
        let (mut evaluated, penalised) = self.compare(preemption, alloc_ask, preempted);
        evaluated.sort_by(|left, right| right.score.total_cmp(&left.score));
        let mut evaluated = evaluated.into_iter();
        let best = evaluated.next().or(penalised)?;
        self.assign(best, &evaluated.collect::<Vec<_>>(), rng)
    }

    /// Orders the full nodes: all of them at first, then those that have changed.
    fn prepare(&self, preemption: &mut PreemptionCandidates) {
        preemption.round += 1;
        // Each allocation changes the spread boosts of all nodes.
        if !self.spreads.is_empty() {
            preemption.bounded = None;
        }
        let mut touched = std::mem::take(&mut preemption.touched);
        match &mut preemption.bounded {
            Some(bounded) => {
                touched.sort_unstable();
                touched.dedup();
                let rows = touched.into_iter().map(|node| {
                    let row = self.cluster.row(node);
                    (node, row)
                });
                let fresh = rows.filter_map(|(node, row)| {
                    self.bounded_candidate(&preemption.preemptor, node, row)
                });
                bounded.extend(fresh);
            }
            None => {
                let preemptor = &preemption.preemptor;
                let all = self.feasible();
                let all =
                    all.filter_map(|(node, row)| self.bounded_candidate(preemptor, node, row));
                preemption.bounded = Some(all.collect());
            }
        }
    }

    /// Returns the upper bound of a node's score; `None`: evictions cannot make room.
    fn bounded_candidate(
        &self,
        preemptor: &Preemptor,
        position: usize,
        row: &NodeRow,
    ) -> Option<BoundedCandidate> {
        let ask = self.requirements.resources;
        let after = self.cluster.used(position).plus(ask);
        let mut left = after;
        let mut highest = None;
        for share in preemptor.shares(self.cluster.snapshot, row.id) {
            if highest.is_none() || left.exceeds(row.available).is_some() {
                highest = Some(share.priority);
            }
            left = left.minus(share.total);
        }
        // A single victim of the needed priority is the best set of victims possible.
        let highest = highest.filter(|_| left.max(ask).exceeds(row.available).is_none())?;
        // The fullest, or the emptiest, that evictions can leave it.
        let best = match self.algorithm {
            Algorithm::Binpack => after.min(row.available),
            Algorithm::Spread => left.max(ask),
        };
        let parts = Parts {
            preemption: Some(preemption_score([highest])),
            // The best possible devices.
            ..self.parts_with(
                position,
                row,
                best,
                self.requirements
                    .dedicated
                    .has_device_affinities()
                    .then_some(1.0),
            )
        };
        Some(BoundedCandidate {
            score: self.score(row, &parts),
            node: u32::try_from(position).ok()?,
            changes: self.bucket_refs[position].changes,
            round: 0,
        })
    }

    fn score(&self, row: &NodeRow, parts: &Parts) -> f64 {
        parts.score() + self.cluster.tie_breaker(row.id) * self.cluster.near_tie
    }

    /// Evaluates the most promising nodes. Returns those where evictions make room, in no order, and the
    /// best of the penalised ones, on which a predecessor failed.
    fn compare(
        &self,
        preemption: &mut PreemptionCandidates,
        alloc_ask: &AllocAsk,
        preempted: &Preempted,
    ) -> (Vec<Evaluated<'a>>, Option<Evaluated<'a>>) {
        let mut evaluated = Vec::new();
        let mut penalised = None::<Evaluated<'a>>;
        let mut aside = Vec::new();
        let Some(bounded) = &mut preemption.bounded else {
            return (evaluated, penalised);
        };
        while let Some(top) = bounded.pop() {
            let position = top.node as usize;
            if self.bucket_refs[position].changes != top.changes {
                // Outdated: the node was added again after it changed.
                continue;
            }
            if top.round == preemption.round {
                // The best exact score: no other node can be better.
                aside.push(top);
                break;
            }
            if self.ruled_out_at(position) {
                aside.push(top);
                continue;
            }
            let Some(mut candidate) = self.evaluate(&preemption.preemptor, position, preempted)
            else {
                // Only a change of the node can help.
                continue;
            };
            if alloc_ask.penalised.contains(&self.cluster.row(position).id) {
                aside.push(top);
                candidate.parts.is_penalised = true;
                candidate.score = self.score(self.cluster.row(position), &candidate.parts);
                if penalised
                    .as_ref()
                    .is_none_or(|best| candidate.score > best.score)
                {
                    penalised = Some(candidate);
                }
                continue;
            }
            bounded.push(BoundedCandidate {
                score: candidate.score,
                round: preemption.round,
                ..top
            });
            evaluated.push(candidate);
            if evaluated.len() >= COMPARED_MAX {
                break;
            }
        }
        bounded.extend(aside);
        (evaluated, penalised)
    }

    fn ruled_out_at(&self, position: usize) -> bool {
        self.is_next_to_another(position)
            || self.limit_at(position).is_some()
            || !self.volumes_serve(position)
    }

    /// Chooses the victims on a node.
    fn evaluate(
        &self,
        preemptor: &Preemptor,
        position: usize,
        preempted: &Preempted,
    ) -> Option<Evaluated<'a>> {
        let (snapshot, table) = (self.cluster.snapshot, self.cluster.table);
        if self.ruled_out_at(position) {
            return None;
        }
        let row = table.row(position);
        let candidates = preemptor.candidates(snapshot, row.id, preempted);
        let usage = self.cluster.usage(position);
        let room = NodeFit {
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
        Some(Evaluated {
            position,
            victims: chosen.iter().map(|candidate| candidate.view).collect(),
            score: self.score(row, &parts),
            parts,
        })
    }

    /// Returns the scores of a node for one more after the eviction of `victims`; `None` when it has no
    /// room even then.
    pub(crate) fn parts_without(
        &self,
        position: usize,
        room: &NodeFit<'_>,
        victims: &[Candidate<'a>],
    ) -> Option<Parts> {
        let mut without = room.usage.clone();
        for victim in victims {
            without.remove(victim.resources());
        }
        let assignment = room.with(&without).find().ok()?;
        let after = without.total.plus(assignment.total(self.requirements));
        let priorities = victims.iter().map(|victim| victim.priority);
        let row = self.cluster.row(position);
        Some(Parts {
            preemption: Some(preemption_score(priorities)),
            ..self.parts_with(position, row, after, assignment.dedicated.device_score)
        })
    }

    /// Assigns ports, cores and devices of the chosen node.
    fn assign(
        &mut self,
        candidate: Evaluated<'a>,
        others: &[Evaluated<'a>],
        rng: &mut RunRng,
    ) -> Option<Found<'a>> {
        let table = self.cluster.table;
        let mut usage = self.cluster.usage(candidate.position);
        for victim in &candidate.victims {
            usage.remove(&victim.alloc.resources);
        }
        let node = &table.node(candidate.position)?.value;
        let assignment = Assignment::on(node, &usage, self.requirements, |bound| rng.below(bound));
        let assignment = assignment.ok()?;
        let mut metric = self.screening.placed(&candidate.parts);
        if !self.has_runners_up {
            self.has_runners_up = true;
            let others = others.iter().take(RUNNERS_UP_MAX);
            metric.runners_up = others
                .map(|other| node_score(table.row(other.position).id, &other.parts))
                .collect();
        }
        Some(Found {
            position: candidate.position,
            node_id: node.id,
            assignment,
            metric,
            victims: candidate.victims,
        })
    }

    /// Releases the resources of the victims on a node; the caller takes the node next.
    pub(crate) fn evict(&mut self, victims: &[&AllocView]) {
        for victim in victims {
            let alloc = &victim.alloc;
            self.cluster.release(alloc.node_id, &alloc.resources);
        }
    }
}
