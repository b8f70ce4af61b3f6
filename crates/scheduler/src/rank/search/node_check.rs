//! Checks of one node: its room, its scores, and the reasons that rule it out.

use model::{ComparableResources, NodeId};
use placement::ports::check_static;
use placement::{Dedicated, Exhausted, Level};
use state::NodeRow;

use crate::rank::ask::AllocAsk;
use crate::rank::score::{Parts, anti_affinity, fit};
use crate::rank::score_buckets::Entry;
use crate::rank::search::Search;

/// A node with one more allocation of the group on it.
pub(super) struct NodeUse {
    pub(super) after: ComparableResources,
    /// The score of its devices.
    pub(super) devices: Option<f64>,
}

impl Search<'_, '_> {
    /// Makes the entry of a node: its random number weighs as much in a mean as a near-tie allows.
    pub(super) fn entry(&self, id: NodeId, node: u32, parts: &Parts, changes: u32) -> Entry {
        let (sum, scorers) = parts.base();
        Entry {
            key: sum + self.cluster.tie_breaker(id) * self.cluster.near_tie * scorers,
            node,
            changes,
        }
    }

    /// Returns the scores of a node for an allocation; `None`: it has no room.
    pub(super) fn parts_for(&self, position: usize, alloc_ask: &AllocAsk) -> Option<Parts> {
        let node_id = self.cluster.row(position).id;
        Some(Parts {
            is_penalised: alloc_ask.penalised.contains(&node_id),
            ..self.parts(position)?
        })
    }

    /// Returns the scores of a node for one more; `None`: it has no room.
    pub(crate) fn parts(&self, position: usize) -> Option<Parts> {
        let row = self.cluster.row(position);
        let room = self.room(position, row)?;
        Some(self.parts_with(position, row, room.after, room.devices))
    }

    /// Returns the scores of a node that holds `after` with one more on it, with the score of the
    /// devices that it gets.
    pub(crate) fn parts_with(
        &self,
        position: usize,
        row: &NodeRow,
        after: ComparableResources,
        devices: Option<f64>,
    ) -> Parts {
        let of_group = self.cluster.slot(position).map_or(0, |slot| slot.of_group);
        let bucket = self.bucket_refs[position].bucket;
        Parts {
            fit: fit(self.algorithm, row.available, after),
            anti_affinity: anti_affinity(of_group, self.count),
            is_penalised: false,
            affinity: self.affinities.of(position, row),
            spread: self.buckets.total(bucket),
            devices,
            preemption: None,
        }
    }

    /// Returns the node with one more on it; `None`: it has no room.
    pub(super) fn room(&self, position: usize, row: &NodeRow) -> Option<NodeUse> {
        let (used, free_allocs) = match self.cluster.slot(position) {
            Some(slot) => (slot.used, slot.free_allocs),
            None => (row.used, row.free_allocs),
        };
        self.room_without(position, row, used, free_allocs)
    }

    /// As [`Self::room`], for a node that holds `used` and takes `free_allocs` more.
    ///
    /// The cheapest check comes first; [`Self::exhausted`] reports in the right order.
    pub(super) fn room_without(
        &self,
        position: usize,
        row: &NodeRow,
        used: ComparableResources,
        free_allocs: i32,
    ) -> Option<NodeUse> {
        let mut room = NodeUse {
            after: used.plus(self.requirements.resources),
            devices: None,
        };
        if room.after.exceeds(row.available).is_some()
            || free_allocs < 1
            || self.lacks_ports(position).is_some()
        {
            return None;
        }
        if !self.requirements.dedicated.is_empty() {
            let assignment = self.dedicated(position).ok()?;
            room.after.cpu_mhz = room.after.cpu_mhz.saturating_add(assignment.cpu_mhz);
            if room.after.cpu_mhz > row.available.cpu_mhz {
                return None;
            }
            room.devices = assignment.device_score;
        }
        Some(room)
    }

    /// Returns the dedicated cores and devices of one more.
    fn dedicated(&self, position: usize) -> Result<Dedicated, Exhausted> {
        let Some(node) = self.cluster.table.node(position) else {
            return Err(Exhausted::Amount(Exhausted::CORES));
        };
        let holding = self.cluster.holding(position);
        self.requirements.dedicated.assign(&node.value, &holding)
    }

    /// Returns the static port that is not free.
    fn lacks_ports(&self, position: usize) -> Option<Exhausted> {
        if !self.has_static_ports {
            return None;
        }
        let asks = &self.requirements.ports;
        let node = &self.cluster.table.node(position)?.value;
        check_static(node, self.cluster.ports(position), asks).err()
    }

    /// Tells whether `distinct_hosts` rules a node out.
    pub(crate) fn is_next_to_another(&self, position: usize) -> bool {
        let Some(distinct) = self.requirements.distinct_hosts else {
            return false;
        };
        let slot = self.cluster.slot(position);
        slot.is_some_and(|slot| match distinct.level {
            Level::Job => slot.of_job > slot.of_other_generation,
            Level::Group => slot.of_group > slot.of_other_generation,
        })
    }

    /// Returns the position of the `distinct_property` that rules a node out.
    pub(crate) fn limit_at(&self, position: usize) -> Option<usize> {
        let table = self.cluster.table;
        let mut limits = self.properties.iter();
        limits.position(|limit| !limit.admits(table, position))
    }

    /// Returns why the job's other allocations rule a node out.
    pub(crate) fn ruled_out(&self, position: usize) -> Option<String> {
        if self.is_next_to_another(position) {
            return Some(placement::DistinctHosts::REASON.to_owned());
        }
        if let Some(fault) = self.csi_fault(position) {
            return Some(fault);
        }
        if !self.volumes_serve(position) {
            return Some(placement::VolumeAsks::REASON.to_owned());
        }
        let limit = self.limit_at(position)?;
        Some(self.properties[limit].reason(self.cluster.table, position))
    }

    /// Returns the exhausted dimension of a node.
    pub(crate) fn exhausted(&self, position: usize, row: &NodeRow) -> Option<Exhausted> {
        if let Some(exhausted) = self.lacks_ports(position) {
            return Some(exhausted);
        }
        let mut after = self
            .cluster
            .used(position)
            .plus(self.requirements.resources);
        if !self.requirements.dedicated.is_empty() {
            match self.dedicated(position) {
                Ok(assignment) => after.cpu_mhz = after.cpu_mhz.saturating_add(assignment.cpu_mhz),
                Err(exhausted) => return Some(exhausted),
            }
        }
        if self.cluster.free_allocs(position) < 1 {
            return Some(Exhausted::Amount(Exhausted::MAX_ALLOCS));
        }
        after.exceeds(row.available).map(Exhausted::Amount)
    }
}
