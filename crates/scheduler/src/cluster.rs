//! The nodes as the plan so far leaves them: the snapshot's table, and what differs from it.
//!
//! A plan touches few nodes of many, so only those are copied.

use model::{AllocatedResources, ComparableResources, NodeId};
use rustc_hash::FxHashMap;
use state::{NO_PORTS, NodeTable, PortUse, Snapshot};

/// One node that the plan, or the job being placed, has something on.
#[derive(Clone, Debug)]
pub(crate) struct Slot {
    pub(crate) used: ComparableResources,
    /// How many live allocations of the job are on it.
    pub(crate) of_job: u32,
    /// How many of them are of the group being placed.
    pub(crate) of_group: u32,
    /// The ports that are held; `None`: as in the snapshot.
    ports: Option<PortUse>,
}

/// All nodes, by their positions in the snapshot's table.
#[derive(Clone, Debug)]
pub(crate) struct Cluster<'a> {
    pub(crate) snapshot: &'a Snapshot,
    pub(crate) table: &'a NodeTable,
    /// Position → what differs from the table.
    slots: FxHashMap<usize, Slot>,
    /// What near-ties between nodes are broken by.
    seed: u64,
}

impl<'a> Cluster<'a> {
    pub(crate) fn new(snapshot: &'a Snapshot, seed: u64) -> Self {
        Self {
            snapshot,
            table: snapshot.node_table(),
            slots: FxHashMap::default(),
            seed,
        }
    }

    /// Returns the position of `node`, if it is known.
    pub(crate) fn position(&self, node: NodeId) -> Option<usize> {
        self.table.position(node)
    }

    /// Returns what differs from the table at `position`; `None`: nothing.
    pub(crate) fn slot(&self, position: usize) -> Option<&Slot> {
        self.slots.get(&position)
    }

    pub(crate) fn slot_mut(&mut self, position: usize) -> &mut Slot {
        let table = self.table;
        self.slots.entry(position).or_insert_with(|| Slot {
            used: table.row(position).used,
            of_job: 0,
            of_group: 0,
            ports: None,
        })
    }

    /// Returns the positions where something differs from the table, in no particular order.
    pub(crate) fn touched(&self) -> impl Iterator<Item = usize> {
        self.slots.keys().copied()
    }

    /// Forgets where the job's allocations are, before another group counts them.
    pub(crate) fn forget_job(&mut self) {
        for slot in self.slots.values_mut() {
            slot.of_job = 0;
            slot.of_group = 0;
        }
    }

    pub(crate) fn used(&self, position: usize) -> ComparableResources {
        match self.slot(position) {
            Some(slot) => slot.used,
            None => self.table.row(position).used,
        }
    }

    /// Returns the ports that allocations on the node hold.
    pub(crate) fn ports(&self, position: usize) -> &PortUse {
        let slot = self.slot(position);
        match slot.and_then(|slot| slot.ports.as_ref()) {
            Some(ports) => ports,
            None => self.ports_before(position),
        }
    }

    fn ports_before(&self, position: usize) -> &'a PortUse {
        let row = self.table.row(position);
        if row.port_count == 0 {
            return &NO_PORTS;
        }
        let usage = self.snapshot.usage(row.id);
        usage.map_or(&NO_PORTS, |usage| &usage.ports)
    }

    /// Counts what an allocation takes.
    pub(crate) fn hold(&mut self, position: usize, resources: &AllocatedResources) {
        let before = self.ports_before(position);
        let slot = self.slot_mut(position);
        slot.used = slot.used.plus(resources.total);
        if !resources.ports.is_empty() {
            let ports = slot.ports.get_or_insert_with(|| before.clone());
            ports.add(&resources.ports);
        }
    }

    /// Counts what a stopped allocation gives up.
    pub(crate) fn release(&mut self, node: NodeId, resources: &AllocatedResources) {
        let Some(position) = self.position(node) else {
            return;
        };
        let before = self.ports_before(position);
        let slot = self.slot_mut(position);
        slot.used = slot.used.minus(resources.total);
        if !resources.ports.is_empty() {
            let ports = slot.ports.get_or_insert_with(|| before.clone());
            ports.remove(&resources.ports);
        }
    }

    /// Returns a number from 0 to 1 that is the node's own for this plan.
    ///
    /// It depends on the node's id and not on its position, so that replicas with different pasts
    /// agree.
    pub(crate) fn lot(&self, node: NodeId) -> f64 {
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
