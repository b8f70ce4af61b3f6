//! Takes the best node off the shelves, for one allocation.

use model::NodeId;
use placement::assign_ports;

use crate::draw::Draw;
use crate::rank::explain;
use crate::rank::given::Given;
use crate::rank::score::{NOTHING, with_penalty};
use crate::rank::search::{Found, Search, Wish};
use crate::rank::shelves::Entry;

impl<'a> Search<'a, '_> {
    /// Returns the best node for one more allocation; the caller takes it with [`Self::take`].
    pub(crate) fn find(&mut self, wish: &Wish, draw: &mut Draw) -> Option<Found<'a>> {
        let asks_for_own = self.requirements.volumes.differ_by_alloc();
        self.own_volumes_of = asks_for_own.then_some(wish.name_index);
        self.name_index = wish.name_index;
        self.tied_to = self.ties();
        if let Some(found) = self.find_preferred(wish, draw) {
            return Some(found);
        }
        // Nothing for this allocation, but perhaps for the next.
        let mut passed_over = Vec::new();
        let mut penalised = Vec::new();
        let mut best = None;
        while let Some((entry, shelf, score)) = self.next(draw) {
            if !self.has_own_volumes(entry.position()) {
                passed_over.push((entry, shelf));
                continue;
            }
            if self.volume_is_taken(entry.position()) {
                // As with what `accept` rules out: it comes up again after a change.
                if asks_for_own {
                    passed_over.push((entry, shelf));
                }
                continue;
            }
            if !wish.penalised.is_empty() {
                let node_id = self.cluster.row(entry.position()).id;
                if wish.penalised.contains(&node_id) {
                    penalised.push((entry, shelf));
                    continue;
                }
            }
            if let Some(given) = self.accept(entry, draw) {
                best = Some((entry, shelf, score, given));
                break;
            }
        }
        for (entry, shelf) in passed_over {
            self.shelves.push(shelf, entry, &self.places);
        }
        self.weigh_penalised(penalised, &mut best, draw);
        let (entry, _, _, given) = best?;
        Some(self.found(entry.position(), wish, given))
    }

    /// Takes out the best node, or one of the best that the job likes no less: only the fit may be
    /// worse.
    fn next(&mut self, draw: &mut Draw) -> Option<(Entry, u32, f64)> {
        let among = draw.choice().among as usize;
        if among <= 1 {
            return self.shelves.pop(&self.places);
        }
        let first = self.shelves.pop(&self.places)?;
        let liking = self.liking(first.0);
        let mut liked = vec![first];
        let mut others = Vec::new();
        while liked.len() + others.len() < among
            && let Some(next) = self.shelves.pop(&self.places)
        {
            if self.liking(next.0) < liking - NOTHING {
                others.push(next);
            } else {
                liked.push(next);
            }
        }
        let count = u32::try_from(liked.len()).ok()?;
        let drawn = liked.swap_remove(draw.below(count) as usize);
        for (entry, shelf, _) in liked.into_iter().chain(others) {
            self.shelves.push(shelf, entry, &self.places);
        }
        Some(drawn)
    }

    /// Returns what is said of a node apart from how full it is.
    fn liking(&self, entry: Entry) -> f64 {
        let parts = self.parts(entry.position());
        parts.map_or(f64::NEG_INFINITY, |parts| parts.liking())
    }

    /// Lets the nodes on which a predecessor failed compete with the best of the others.
    fn weigh_penalised(
        &mut self,
        penalised: Vec<(Entry, u32)>,
        best: &mut Option<(Entry, u32, f64, Given)>,
        draw: &mut Draw,
    ) {
        for (entry, shelf) in penalised {
            let parts = self.parts(entry.position());
            let Some(parts) = parts else { continue };
            let (_, scorers) = parts.base();
            let score = with_penalty(entry.key, scorers, parts.spread);
            let is_better = best.as_ref().is_none_or(|(_, _, other, _)| score > *other);
            if !is_better {
                self.shelves.push(shelf, entry, &self.places);
                continue;
            }
            let Some(given) = self.accept(entry, draw) else {
                continue;
            };
            if let Some((loser, shelf, _, _)) = best.replace((entry, shelf, score, given)) {
                self.shelves.push(shelf, loser, &self.places);
            }
        }
    }

    fn node_id(&self, entry: Entry) -> NodeId {
        self.cluster.row(entry.position()).id
    }

    fn find_preferred(&mut self, wish: &Wish, draw: &mut Draw) -> Option<Found<'a>> {
        let position = self.cluster.position(wish.preferred?)?;
        if !self.places[position].is_somewhere()
            || self.is_next_to_another(position)
            || !self.volumes_serve(position)
        {
            return None;
        }
        let parts = self.parts(position)?;
        let row = self.cluster.row(position);
        let node = u32::try_from(position).ok()?;
        let entry = self.entry(row.id, node, &parts, self.places[position].changes);
        if self.limit_at(position).is_some() {
            // Its entry is still on its shelf, so nothing is to be parked.
            return None;
        }
        let given = self.accept(entry, draw)?;
        Some(self.found(position, wish, given))
    }

    /// Gives the node of `entry` to an allocation, unless something rules it out; then it comes up
    /// again only after a change.
    fn accept(&mut self, entry: Entry, draw: &mut Draw) -> Option<Given> {
        let position = entry.position();
        let table = self.cluster.table;
        if let Some(limit) = self.limit_at(position) {
            self.properties[limit].park(table, entry);
            return None;
        }
        let (asks, exclusive) = (&self.requirements.ports, &self.requirements.exclusive);
        let mut given = Given::default();
        if asks.is_empty() && exclusive.is_empty() {
            return Some(given);
        }
        let node = &table.node(position)?.value;
        if !asks.is_empty() {
            let held = self.cluster.ports(position);
            given.ports = assign_ports(node, held, asks, |bound| draw.below(bound)).ok()?;
        }
        if !exclusive.is_empty() {
            let holding = self.cluster.holding(position);
            given.exclusive = exclusive.assign(node, &holding).ok()?;
        }
        Some(given)
    }

    fn found(&mut self, position: usize, wish: &Wish, given: Given) -> Found<'a> {
        let parts = self.parts_for(position, wish);
        let parts = parts.expect("a node that was found has room");
        let mut metric = self.groundwork.placed(&parts);
        if !self.has_told_runners_up {
            self.has_told_runners_up = true;
            metric.runners_up = self.runners_up(position, wish);
        }
        Found {
            position,
            node_id: self.cluster.row(position).id,
            given,
            metric,
            victims: Vec::new(),
        }
    }

    /// Returns the scores of the next best nodes after the one at `position`.
    fn runners_up(&mut self, position: usize, wish: &Wish) -> Vec<model::NodeScore> {
        let mut seen = Vec::new();
        let mut scores = Vec::new();
        while seen.len() < explain::RUNNERS_UP_MAX + 1 && scores.len() < explain::RUNNERS_UP_MAX {
            let Some((entry, shelf, _)) = self.shelves.pop(&self.places) else {
                break;
            };
            seen.push((entry, shelf));
            let other = entry.position();
            if other == position || self.limit_at(other).is_some() || !self.volumes_serve(other) {
                continue;
            }
            if let Some(parts) = self.parts_for(other, wish) {
                scores.push(explain::node_score(self.node_id(entry), &parts));
            }
        }
        for (entry, shelf) in seen {
            self.shelves.push(shelf, entry, &self.places);
        }
        scores.sort_by_key(|score| std::cmp::Reverse(score.per_mille));
        scores
    }
}
