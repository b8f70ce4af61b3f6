//! Counts what comes to a node and what leaves it, and puts the nodes that it matters to where they
//! belong now.

use model::AllocatedResources;
use state::AllocView;

use crate::rank::search::{Search, total};
use crate::rank::shelves::Shelves;
use crate::rank::spread::{Changed, SpreadUse};

impl Search<'_, '_> {
    /// Counts one more allocation of the group on a node that was found.
    pub(crate) fn take(&mut self, position: usize, resources: &AllocatedResources) {
        self.cluster.hold(position, resources);
        self.join(position);
    }

    /// Counts what `view`, an allocation of the group that is stopped, gives up.
    pub(crate) fn release(&mut self, view: &AllocView) {
        self.cluster
            .release(view.alloc.node_id, &view.alloc.resources);
        if let Some(position) = self.cluster.position(view.alloc.node_id) {
            self.leave(position);
        }
    }

    /// Takes back [`Self::release`].
    pub(crate) fn hold(&mut self, view: &AllocView) {
        if let Some(position) = self.cluster.position(view.alloc.node_id) {
            self.cluster.hold(position, &view.alloc.resources);
            self.join(position);
        }
    }

    /// One more of the group is on the node.
    fn join(&mut self, position: usize) {
        let table = self.cluster.table;
        let slot = self.cluster.slot_mut(position);
        slot.of_job += 1;
        slot.of_group += 1;
        for property in &mut self.properties {
            property.add(table, position);
        }
        self.count_in_spreads(position, SpreadUse::add);
        self.rescore(position);
    }

    /// One of the group less is on the node.
    fn leave(&mut self, position: usize) {
        let table = self.cluster.table;
        let slot = self.cluster.slot_mut(position);
        slot.of_job = slot.of_job.saturating_sub(1);
        slot.of_group = slot.of_group.saturating_sub(1);
        let mut let_in = Vec::new();
        for property in &mut self.properties {
            let_in.append(&mut property.remove(table, position));
        }
        for entry in let_in {
            let place = self.places[entry.position()];
            if place.is_somewhere() && place.changes == entry.changes {
                self.shelves.push(place.shelf, entry, &self.places);
            }
        }
        self.count_in_spreads(position, SpreadUse::remove);
        self.rescore(position);
    }

    /// Lets every spread count a change at a node, and tells the shelves that are told otherwise now.
    fn count_in_spreads(
        &mut self,
        position: usize,
        count: impl Fn(&mut SpreadUse, u32) -> Changed,
    ) {
        let table = self.cluster.table;
        for number in 0..self.spreads.len() {
            let value = self.spreads[number].value_at(table, position);
            let changed = count(&mut self.spreads[number], value);
            let key = match changed {
                Changed::Nobody => None,
                Changed::Key(key) => Some(Some(key)),
                Changed::Everybody => Some(None),
            };
            if let Some(key) = key {
                let spreads = &self.spreads;
                self.shelves.tell(number, key, |keys| total(spreads, keys));
            }
            for node in 0..self.spreads[number].nodes_of(value).len() {
                let node = self.spreads[number].nodes_of(value)[node];
                self.rescore(node);
            }
        }
    }

    /// Puts a node that has changed where it belongs now.
    pub(super) fn rescore(&mut self, position: usize) {
        let place = self.places[position];
        if !place.is_somewhere() {
            return;
        }
        if let Some(crowd) = &mut self.crowd {
            crowd.touch(position);
        }
        let changes = place.changes + 1;
        self.places[position].changes = changes;
        self.shelves.refresh(place.shelf, &self.places);
        if self.is_next_to_another(position) {
            return;
        }
        let Some(parts) = self.parts(position) else {
            return;
        };
        let combination = if self.spreads.iter().all(SpreadUse::is_shared) {
            place.shelf / 2
        } else {
            self.combination_at(position)
        };
        let shelf = Shelves::shelf(combination, parts.anti_affinity.is_some());
        self.places[position].shelf = shelf;
        let row = self.cluster.row(position);
        let Ok(node) = u32::try_from(position) else {
            return;
        };
        let entry = self.entry(row.id, node, &parts, changes);
        self.shelves.push(shelf, entry, &self.places);
    }
}
