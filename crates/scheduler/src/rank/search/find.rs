//! Search of the best node with room, for one allocation.

use model::NodeId;
use placement::assign_ports;

use crate::rank::ask::{AllocAsk, Found};
use crate::rank::assignment::Assignment;
use crate::rank::metrics::{RUNNERS_UP_MAX, node_score};
use crate::rank::score::{NOTHING, with_penalty};
use crate::rank::score_buckets::Entry;
use crate::rank::search::Search;
use crate::run_rng::RunRng;

impl<'a> Search<'a, '_> {
    /// Returns the best node for one more allocation; the caller takes it with [`Self::take`].
    pub(crate) fn find(&mut self, alloc_ask: &AllocAsk, rng: &mut RunRng) -> Option<Found<'a>> {
        let asks_for_own = self.requirements.differ_by_alloc();
        let asks_node = self.requirements.volumes.differ_by_alloc();
        self.own_volumes_of = asks_node.then_some(alloc_ask.name_index);
        self.name_index = alloc_ask.name_index;
        self.tied_to = self.ties();
        if let Some(found) = self.find_preferred(alloc_ask, rng) {
            return Some(found);
        }
        // Unsuitable for this allocation, but perhaps not for the next.
        let mut passed_over = Vec::new();
        let mut penalised = Vec::new();
        let mut best = None;
        while let Some((entry, bucket, score)) = self.next(rng) {
            if !self.has_own_volumes(entry.position()) {
                passed_over.push((entry, bucket));
                continue;
            }
            if self.volume_is_taken(entry.position()) {
                // As with what `accept` rules out: the node comes up again after a change.
                if asks_for_own {
                    passed_over.push((entry, bucket));
                }
                continue;
            }
            if !alloc_ask.penalised.is_empty() {
                let node_id = self.cluster.row(entry.position()).id;
                if alloc_ask.penalised.contains(&node_id) {
                    penalised.push((entry, bucket));
                    continue;
                }
            }
            if let Some(assignment) = self.accept(entry, rng) {
                best = Some((entry, bucket, score, assignment));
                break;
            }
        }
        for (entry, bucket) in passed_over {
            self.buckets.push(bucket, entry, &self.bucket_refs);
        }
        self.weigh_penalised(penalised, &mut best, rng);
        let (entry, _, _, assignment) = best?;
        Some(self.found(entry.position(), alloc_ask, assignment))
    }

    /// Takes out the best node, or draws one of the best with an equal or higher preference: only the
    /// fit may be worse.
    fn next(&mut self, rng: &mut RunRng) -> Option<(Entry, u32, f64)> {
        let among = rng.selection().among as usize;
        if among <= 1 {
            return self.buckets.pop(&self.bucket_refs);
        }
        let first = self.buckets.pop(&self.bucket_refs)?;
        let preference = self.preference(first.0);
        let mut liked = vec![first];
        let mut others = Vec::new();
        while liked.len() + others.len() < among
            && let Some(next) = self.buckets.pop(&self.bucket_refs)
        {
            if self.preference(next.0) < preference - NOTHING {
                others.push(next);
            } else {
                liked.push(next);
            }
        }
        let count = u32::try_from(liked.len()).ok()?;
        let drawn = liked.swap_remove(rng.below(count) as usize);
        for (entry, bucket, _) in liked.into_iter().chain(others) {
            self.buckets.push(bucket, entry, &self.bucket_refs);
        }
        Some(drawn)
    }

    /// Returns the sum of a node's scorers apart from fit and penalty.
    fn preference(&self, entry: Entry) -> f64 {
        let parts = self.parts(entry.position());
        parts.map_or(f64::NEG_INFINITY, |parts| parts.preference())
    }

    /// Compares the penalised nodes, on which a predecessor failed, with the best of the others.
    fn weigh_penalised(
        &mut self,
        penalised: Vec<(Entry, u32)>,
        best: &mut Option<(Entry, u32, f64, Assignment)>,
        rng: &mut RunRng,
    ) {
        for (entry, bucket) in penalised {
            let parts = self.parts(entry.position());
            let Some(parts) = parts else { continue };
            let (_, scorers) = parts.base();
            let score = with_penalty(entry.key, scorers, parts.spread);
            let is_better = best.as_ref().is_none_or(|(_, _, other, _)| score > *other);
            if !is_better {
                self.buckets.push(bucket, entry, &self.bucket_refs);
                continue;
            }
            let Some(assignment) = self.accept(entry, rng) else {
                continue;
            };
            if let Some((loser, bucket, _, _)) = best.replace((entry, bucket, score, assignment)) {
                self.buckets.push(bucket, loser, &self.bucket_refs);
            }
        }
    }

    fn node_id(&self, entry: Entry) -> NodeId {
        self.cluster.row(entry.position()).id
    }

    fn find_preferred(&mut self, alloc_ask: &AllocAsk, rng: &mut RunRng) -> Option<Found<'a>> {
        let position = self.cluster.position(alloc_ask.preferred?)?;
        if !self.bucket_refs[position].has_bucket()
            || self.is_next_to_another(position)
            || !self.volumes_serve(position)
        {
            return None;
        }
        let parts = self.parts(position)?;
        let row = self.cluster.row(position);
        let node = u32::try_from(position).ok()?;
        let entry = self.entry(row.id, node, &parts, self.bucket_refs[position].changes);
        if self.limit_at(position).is_some() {
            // Its entry is still in its bucket, so nothing has to be parked.
            return None;
        }
        let assignment = self.accept(entry, rng)?;
        Some(self.found(position, alloc_ask, assignment))
    }

    /// Assigns resources of the node of `entry`, unless something rules it out; then the node comes
    /// up again only after a change.
    fn accept(&mut self, entry: Entry, rng: &mut RunRng) -> Option<Assignment> {
        let position = entry.position();
        let table = self.cluster.table;
        if let Some(limit) = self.limit_at(position) {
            self.properties[limit].park(table, entry);
            return None;
        }
        let (asks, dedicated) = (&self.requirements.ports, &self.requirements.dedicated);
        let mut assignment = Assignment::default();
        if asks.is_empty() && dedicated.is_empty() {
            return Some(assignment);
        }
        let node = &table.node(position)?.value;
        if !asks.is_empty() {
            let held = self.cluster.ports(position);
            assignment.ports = assign_ports(node, held, asks, |bound| rng.below(bound)).ok()?;
        }
        if !dedicated.is_empty() {
            let holding = self.cluster.holding(position);
            assignment.dedicated = dedicated.assign(node, &holding).ok()?;
        }
        Some(assignment)
    }

    fn found(
        &mut self,
        position: usize,
        alloc_ask: &AllocAsk,
        assignment: Assignment,
    ) -> Found<'a> {
        let parts = self.parts_for(position, alloc_ask);
        let parts = parts.expect("a node that was found has room");
        let mut metric = self.screening.placed(&parts);
        if !self.has_runners_up {
            self.has_runners_up = true;
            metric.runners_up = self.runners_up(position, alloc_ask);
        }
        Found {
            position,
            node_id: self.cluster.row(position).id,
            assignment,
            metric,
            victims: Vec::new(),
        }
    }

    /// Returns the scores of the best nodes after the one at `position`.
    fn runners_up(&mut self, position: usize, alloc_ask: &AllocAsk) -> Vec<model::NodeScore> {
        let mut seen = Vec::new();
        let mut scores = Vec::new();
        while seen.len() < RUNNERS_UP_MAX + 1 && scores.len() < RUNNERS_UP_MAX {
            let Some((entry, bucket, _)) = self.buckets.pop(&self.bucket_refs) else {
                break;
            };
            seen.push((entry, bucket));
            let other = entry.position();
            if other == position || self.limit_at(other).is_some() || !self.volumes_serve(other) {
                continue;
            }
            if let Some(parts) = self.parts_for(other, alloc_ask) {
                scores.push(node_score(self.node_id(entry), &parts));
            }
        }
        for (entry, bucket) in seen {
            self.buckets.push(bucket, entry, &self.bucket_refs);
        }
        scores.sort_by_key(|score| std::cmp::Reverse(score.per_mille));
        scores
    }
}
