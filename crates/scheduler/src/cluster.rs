//! Nodes as the draft leaves them: the snapshot's table, with an overlay of changes.
//!
//! A plan touches few nodes of many, so only those are copied.

use std::collections::BTreeSet;

use model::{AllocId, AllocatedResources, Allocation, ComparableResources, CsiVolumeKey, NodeId};
use placement::{Holds, VolumeWrites};
use rustc_hash::FxHashMap;
use state::dedicated::DeviceRef;
use state::{DedicatedUse, NO_PORTS, NodeRow, NodeTable, NodeUsage, PortUse, Snapshot};

use crate::selection::Selection;

/// The changes of one node that the plan or the job's allocations touch.
#[derive(Clone, Debug)]
pub(crate) struct Slot {
    pub(crate) used: ComparableResources,
    /// The number of the job's live allocations on it.
    pub(crate) of_job: u32,
    /// Of these, the allocations of the group being placed.
    pub(crate) of_group: u32,
    /// Of the allocations that `distinct_hosts` counts, those that may share the node.
    pub(crate) of_other_generation: u32,
    /// As in [`state::NodeRow`].
    pub(crate) free_allocs: i32,
    /// Changes of the held cores and devices; boxed, because there is a slot for every node that a
    /// plan touches and most have none.
    held: Option<Box<DedicatedUse>>,
    /// `None`: the held ports are as in the snapshot.
    ports: Option<PortUse>,
}

impl Slot {
    fn change_held(
        &mut self,
        resources: &AllocatedResources,
        count: impl FnOnce(&mut DedicatedUse, &AllocatedResources),
    ) {
        if !resources.cores.is_empty() || !resources.devices.is_empty() {
            count(self.held.get_or_insert_default(), resources);
        }
    }

    /// Applies the changes to the node's usage in the snapshot.
    fn put_into(&self, usage: &mut NodeUsage) {
        usage.total = self.used;
        if let Some(change) = &self.held {
            usage.change_dedicated(change);
        }
        if let Some(ports) = &self.ports {
            usage.ports = ports.clone();
        }
    }
}

/// Held cores and devices of a node as the draft leaves them.
pub(crate) struct Holding<'a> {
    stored: Option<&'a DedicatedUse>,
    change: Option<&'a DedicatedUse>,
}

impl Holding<'_> {
    fn count(&self, of: impl Fn(&DedicatedUse) -> i32) -> i32 {
        let both = [self.stored, self.change].into_iter();
        both.flatten().map(of).sum()
    }
}

impl Holds for Holding<'_> {
    fn holds_core(&self, id: u16) -> bool {
        self.count(|held| held.of_core(id)) > 0
    }

    fn holds_device(&self, device: DeviceRef<'_>) -> bool {
        self.count(|held| held.of_device(device)) > 0
    }
}

/// All nodes, by their positions in the snapshot's table.
#[derive(Clone, Debug)]
pub(crate) struct Cluster<'a> {
    pub(crate) snapshot: &'a Snapshot,
    pub(crate) table: &'a NodeTable,
    /// The table's rows by position: a placement reads a dozen of them, which would each be a
    /// look-up in the table's tree.
    rows: Vec<&'a NodeRow>,
    /// Position → changes against the table.
    slots: FxHashMap<usize, Slot>,
    /// Position → volume writes of the plan's allocations.
    writes: FxHashMap<usize, Vec<VolumeWrites>>,
    /// Position → storage systems' volumes of the plan's allocations.
    csi: FxHashMap<usize, Vec<CsiVolumeKey>>,
    /// Seeds the random numbers that break near-ties.
    seed: u64,
    /// Scores closer than this are near-ties.
    pub(crate) near_tie: f64,
}

impl<'a> Cluster<'a> {
    pub(crate) fn new(snapshot: &'a Snapshot, seed: u64) -> Self {
        Self {
            snapshot,
            table: snapshot.node_table(),
            rows: snapshot.node_table().chunks().flatten().collect(),
            slots: FxHashMap::default(),
            writes: FxHashMap::default(),
            csi: FxHashMap::default(),
            seed,
            near_tie: Selection::FIRST.near_tie,
        }
    }

    /// Returns the cluster without the `released` allocations and with the `new` ones.
    ///
    /// A terminal allocation holds nothing in the snapshot, so releasing it frees nothing.
    pub(crate) fn with_changes<'p>(
        snapshot: &'a Snapshot,
        seed: u64,
        released: impl IntoIterator<Item = AllocId>,
        new: impl IntoIterator<Item = &'p Allocation>,
    ) -> Self {
        let mut cluster = Self::new(snapshot, seed);
        let released: BTreeSet<_> = released.into_iter().collect();
        let released = released.into_iter().filter_map(|id| snapshot.alloc(id));
        for view in released.filter(|view| !view.is_terminal()) {
            cluster.release(view.alloc.node_id, &view.alloc.resources);
        }
        for alloc in new {
            if let Some(position) = cluster.position(alloc.node_id) {
                cluster.hold(position, &alloc.resources);
                if snapshot.has_volumes() {
                    cluster.add_writes(position, VolumeWrites::of(snapshot, alloc));
                }
            }
        }
        cluster
    }

    /// Returns the position of `node`; `None`: it is unknown.
    pub(crate) fn position(&self, node: NodeId) -> Option<usize> {
        self.table.position(node)
    }

    /// Returns the row of the node at `position` in the snapshot.
    pub(crate) fn row(&self, position: usize) -> &'a NodeRow {
        self.rows[position]
    }

    /// Returns the changes at `position`; `None`: there are none.
    pub(crate) fn slot(&self, position: usize) -> Option<&Slot> {
        self.slots.get(&position)
    }

    pub(crate) fn slot_mut(&mut self, position: usize) -> &mut Slot {
        let row = self.rows[position];
        self.slots.entry(position).or_insert_with(|| Slot {
            used: row.used,
            free_allocs: row.free_allocs,
            held: None,
            of_job: 0,
            of_group: 0,
            of_other_generation: 0,
            ports: None,
        })
    }

    /// Returns the positions with changes, in no particular order.
    pub(crate) fn touched(&self) -> impl Iterator<Item = usize> {
        self.slots.keys().copied()
    }

    /// Resets the counts of the job's allocations, before another group is placed.
    pub(crate) fn forget_job(&mut self) {
        for slot in self.slots.values_mut() {
            slot.of_job = 0;
            slot.of_group = 0;
            slot.of_other_generation = 0;
        }
    }

    pub(crate) fn used(&self, position: usize) -> ComparableResources {
        match self.slot(position) {
            Some(slot) => slot.used,
            None => self.row(position).used,
        }
    }

    /// Returns how many more allocations the node takes by their number alone; below 1: none.
    pub(crate) fn free_allocs(&self, position: usize) -> i32 {
        match self.slot(position) {
            Some(slot) => slot.free_allocs,
            None => self.row(position).free_allocs,
        }
    }

    /// Returns the held cores and devices of the node.
    pub(crate) fn holding(&self, position: usize) -> Holding<'_> {
        let usage = self.snapshot.usage(self.row(position).id);
        Holding {
            stored: usage.and_then(NodeUsage::dedicated),
            change: self.slot(position).and_then(|slot| slot.held.as_deref()),
        }
    }

    /// Returns the node's usage as the draft leaves it.
    pub(crate) fn usage(&self, position: usize) -> NodeUsage {
        let id = self.row(position).id;
        let mut usage = self.snapshot.usage(id).cloned().unwrap_or_default();
        if let Some(slot) = self.slot(position) {
            slot.put_into(&mut usage);
            let more = self.row(position).free_allocs - slot.free_allocs;
            usage.alloc_count = usage.alloc_count.saturating_add_signed(more);
        }
        usage
    }

    /// Returns the held ports of the node.
    pub(crate) fn ports(&self, position: usize) -> &PortUse {
        let slot = self.slot(position);
        match slot.and_then(|slot| slot.ports.as_ref()) {
            Some(ports) => ports,
            None => self.ports_before(position),
        }
    }

    fn ports_before(&self, position: usize) -> &'a PortUse {
        let row = self.row(position);
        if row.port_count == 0 {
            return &NO_PORTS;
        }
        let usage = self.snapshot.usage(row.id);
        usage.map_or(&NO_PORTS, |usage| &usage.ports)
    }

    /// Adds the volume writes of a new allocation.
    pub(crate) fn add_writes(&mut self, position: usize, writes: VolumeWrites) {
        if !writes.is_empty() {
            self.writes.entry(position).or_default().push(writes);
        }
    }

    /// Returns the volume writes of the new allocations on the node.
    pub(crate) fn writes(&self, position: usize) -> impl Iterator<Item = &VolumeWrites> {
        self.writes.get(&position).into_iter().flatten()
    }

    /// Adds the storage systems' volumes of a new allocation.
    pub(crate) fn add_csi(&mut self, position: usize, volumes: impl Iterator<Item = CsiVolumeKey>) {
        let mut volumes = volumes.peekable();
        if volumes.peek().is_some() {
            self.csi.entry(position).or_default().extend(volumes);
        }
    }

    /// Returns the storage systems' volumes of the new allocations on the node.
    pub(crate) fn csi(&self, position: usize) -> &[CsiVolumeKey] {
        self.csi.get(&position).map_or(&[], Vec::as_slice)
    }

    /// Adds the resources of an allocation.
    pub(crate) fn hold(&mut self, position: usize, resources: &AllocatedResources) {
        let slot = self.slot_mut(position);
        slot.used = slot.used.plus(resources.total);
        slot.free_allocs = slot.free_allocs.saturating_sub(1);
        slot.change_held(resources, DedicatedUse::add);
        if !resources.ports.is_empty() {
            let before = self.ports_before(position);
            let ports = &mut self.slot_mut(position).ports;
            let ports = ports.get_or_insert_with(|| before.clone());
            ports.add(&resources.ports);
        }
    }

    /// Subtracts the resources of a stopped allocation.
    pub(crate) fn release(&mut self, node: NodeId, resources: &AllocatedResources) {
        let Some(position) = self.position(node) else {
            return;
        };
        let slot = self.slot_mut(position);
        slot.used = slot.used.minus(resources.total);
        slot.free_allocs = slot.free_allocs.saturating_add(1);
        slot.change_held(resources, DedicatedUse::remove);
        if !resources.ports.is_empty() {
            let before = self.ports_before(position);
            let ports = &mut self.slot_mut(position).ports;
            let ports = ports.get_or_insert_with(|| before.clone());
            ports.remove(&resources.ports);
        }
    }

    /// Returns the node's random number in this plan, from 0 to 1.
    ///
    /// It depends on the node's id and not on its position, so that replicas with different
    /// histories agree.
    pub(crate) fn tie_breaker(&self, node: NodeId) -> f64 {
        let (high, low) = node.0.as_u64_pair();
        // Source: the finalizer of SplitMix64 (public domain), which spreads every bit.
        let mut mixed = (high ^ low.rotate_left(32)).wrapping_add(self.seed);
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        #[expect(clippy::cast_precision_loss, reason = "53 bits fit a double exactly")]
        let fraction = (mixed >> 11) as f64 / (1_u64 << 53) as f64;
        fraction
    }
}

#[cfg(test)]
mod tests {
    use model::ClientStatus;
    use test_kit::{Stored, builders};

    use super::*;

    #[test]
    fn a_released_allocation_frees_its_resources_once_and_a_terminal_one_nothing() {
        let mut stored = Stored::default();
        let mut node = builders::node(1);
        node.max_allocs = 10;
        let job = builders::service("web", 3);
        stored.put_node(&node);
        stored.put_job(&job);
        let [failed, stopped, kept] =
            [1, 2, 3].map(|number| builders::allocation(number, &job, node.id));
        for alloc in [&failed, &stopped, &kept] {
            stored.put_alloc(alloc);
        }
        stored.put_status(failed.id, ClientStatus::Failed);
        let snapshot = stored.snapshot();
        let released = [failed.id, stopped.id, stopped.id];
        let new = builders::allocation(4, &job, node.id);
        let cluster = Cluster::with_changes(&snapshot, 0, released, [&new]);
        let position = cluster.position(node.id).unwrap();
        let each = kept.resources.total;
        assert_eq!(cluster.used(position), each.plus(each));
        assert_eq!(
            cluster.free_allocs(position),
            cluster.row(position).free_allocs
        );
    }
}
