//! Changes during a search: placements and stops, with the rescoring of affected nodes.

use model::AllocatedResources;
use state::AllocView;

use crate::rank::score_buckets::ScoreBuckets;
use crate::rank::search::Search;
use crate::rank::spread::{Changed, SpreadUse, total};

impl Search<'_, '_> {
    /// Adds an allocation of the group to the node that was found.
    pub(crate) fn take(&mut self, position: usize, resources: &AllocatedResources) {
        self.cluster.hold(position, resources);
        self.join(position);
    }

    /// Subtracts the resources of `view`, a stopped allocation of the group.
    pub(crate) fn release(&mut self, view: &AllocView) {
        self.cluster
            .release(view.alloc.node_id, &view.alloc.resources);
        if let Some(position) = self.cluster.position(view.alloc.node_id) {
            self.leave(position);
        }
    }

    /// Reverts [`Self::release`].
    pub(crate) fn hold(&mut self, view: &AllocView) {
        if let Some(position) = self.cluster.position(view.alloc.node_id) {
            self.cluster.hold(position, &view.alloc.resources);
            self.join(position);
        }
    }

    /// Counts one more allocation of the group on the node.
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

    /// Counts one allocation of the group less on the node.
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
            let bucket_ref = self.bucket_refs[entry.position()];
            if bucket_ref.has_bucket() && bucket_ref.changes == entry.changes {
                self.buckets
                    .push(bucket_ref.bucket, entry, &self.bucket_refs);
            }
        }
        self.count_in_spreads(position, SpreadUse::remove);
        self.rescore(position);
    }

    /// Counts a change at a node in every spread, and updates the affected buckets.
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
                Changed::None => None,
                Changed::Key(key) => Some(Some(key)),
                Changed::All => Some(None),
            };
            if let Some(key) = key {
                let spreads = &self.spreads;
                self.buckets
                    .update_totals(number, key, |keys| total(spreads, keys));
            }
            for node in 0..self.spreads[number].nodes_of(value).len() {
                let node = self.spreads[number].nodes_of(value)[node];
                self.rescore(node);
            }
        }
    }

    /// Moves a changed node to its bucket.
    pub(super) fn rescore(&mut self, position: usize) {
        let bucket_ref = self.bucket_refs[position];
        if !bucket_ref.has_bucket() {
            return;
        }
        if let Some(preemption) = &mut self.preemption {
            preemption.touch(position);
        }
        let changes = bucket_ref.changes + 1;
        self.bucket_refs[position].changes = changes;
        self.buckets.refresh(bucket_ref.bucket, &self.bucket_refs);
        if self.is_next_to_another(position) {
            return;
        }
        let Some(parts) = self.parts(position) else {
            return;
        };
        let combination = if self.spreads.iter().all(SpreadUse::is_shared) {
            bucket_ref.bucket / 2
        } else {
            self.combination_at(position)
        };
        let bucket = ScoreBuckets::bucket(combination, parts.anti_affinity.is_some());
        self.bucket_refs[position].bucket = bucket;
        let row = self.cluster.row(position);
        let Ok(node) = u32::try_from(position) else {
            return;
        };
        let entry = self.entry(row.id, node, &parts, changes);
        self.buckets.push(bucket, entry, &self.bucket_refs);
    }
}
