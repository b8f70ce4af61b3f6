//! The nodes as the plan so far leaves them: the snapshot's table, and what differs from it.
//!
//! A plan touches few nodes of many, so only those are copied.

use model::{AllocatedResources, ComparableResources, NodeId};
use placement::{Holds, VolumeWrites};
use rustc_hash::FxHashMap;
use state::held::DeviceRef;
use state::{Held, NO_PORTS, NodeRow, NodeTable, NodeUsage, PortUse, Snapshot};

use crate::choice::Choice;

/// One node that the plan, or the job being placed, has something on.
#[derive(Clone, Debug)]
pub(crate) struct Slot {
    pub(crate) used: ComparableResources,
    /// How many live allocations of the job are on it.
    pub(crate) of_job: u32,
    /// How many of them are of the group being placed.
    pub(crate) of_group: u32,
    /// How many of those that `distinct_hosts` looks at keep nobody off.
    pub(crate) of_other_generation: u32,
    /// As in [`state::NodeRow`].
    pub(crate) free_allocs: i32,
    /// By how much the plan changes which cores and devices are held; `None`, as mostly: not at all.
    /// Apart, because there is a slot for every node that a plan touches.
    held: Option<Box<Held>>,
    /// The ports that are held; `None`: as in the snapshot.
    ports: Option<PortUse>,
}

impl Slot {
    fn change_held(
        &mut self,
        resources: &AllocatedResources,
        count: impl FnOnce(&mut Held, &AllocatedResources),
    ) {
        if !resources.cores.is_empty() || !resources.devices.is_empty() {
            count(self.held.get_or_insert_default(), resources);
        }
    }

    /// Puts what differs from the snapshot into what the node holds there.
    fn put_into(&self, usage: &mut NodeUsage) {
        usage.total = self.used;
        if let Some(change) = &self.held {
            usage.change_held(change);
        }
        if let Some(ports) = &self.ports {
            usage.ports = ports.clone();
        }
    }
}

/// What allocations hold of a node's cores and devices, as the plan leaves it.
pub(crate) struct Holding<'a> {
    stored: Option<&'a Held>,
    change: Option<&'a Held>,
}

impl Holding<'_> {
    fn count(&self, of: impl Fn(&Held) -> i32) -> i32 {
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
    /// The table's rows by position: a placement reads a dozen of them, and each would be looked for
    /// in the table's tree.
    rows: Vec<&'a NodeRow>,
    /// Position → what differs from the table.
    slots: FxHashMap<usize, Slot>,
    /// Position → what the plan's allocations there write to.
    writes: FxHashMap<usize, Vec<VolumeWrites>>,
    /// What near-ties between nodes are broken by.
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
            seed,
            near_tie: Choice::FIRST.near_tie,
        }
    }

    /// Returns the position of `node`, if it is known.
    pub(crate) fn position(&self, node: NodeId) -> Option<usize> {
        self.table.position(node)
    }

    /// Returns the row of the node at `position`, as the snapshot has it.
    pub(crate) fn row(&self, position: usize) -> &'a NodeRow {
        self.rows[position]
    }

    /// Returns what differs from the table at `position`; `None`: nothing.
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

    /// Returns the positions where something differs from the table, in no particular order.
    pub(crate) fn touched(&self) -> impl Iterator<Item = usize> {
        self.slots.keys().copied()
    }

    /// Forgets where the job's allocations are, before another group counts them.
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

    /// Returns how many more allocations the node takes, whatever their size; below 1: none.
    pub(crate) fn free_allocs(&self, position: usize) -> i32 {
        match self.slot(position) {
            Some(slot) => slot.free_allocs,
            None => self.row(position).free_allocs,
        }
    }

    /// Returns which of the node's cores and devices are held.
    pub(crate) fn holding(&self, position: usize) -> Holding<'_> {
        let usage = self.snapshot.usage(self.row(position).id);
        Holding {
            stored: usage.and_then(NodeUsage::held),
            change: self.slot(position).and_then(|slot| slot.held.as_deref()),
        }
    }

    /// Returns what the node holds as the plan so far leaves it.
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

    /// Returns the ports that allocations on the node hold.
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

    /// Notes what an allocation of the plan writes to.
    pub(crate) fn add_writes(&mut self, position: usize, writes: VolumeWrites) {
        if !writes.is_empty() {
            self.writes.entry(position).or_default().push(writes);
        }
    }

    /// Returns what the plan's allocations on the node write to.
    pub(crate) fn writes(&self, position: usize) -> impl Iterator<Item = &VolumeWrites> {
        self.writes.get(&position).into_iter().flatten()
    }

    /// Counts what an allocation takes.
    pub(crate) fn hold(&mut self, position: usize, resources: &AllocatedResources) {
        let slot = self.slot_mut(position);
        slot.used = slot.used.plus(resources.total);
        slot.free_allocs = slot.free_allocs.saturating_sub(1);
        slot.change_held(resources, Held::add);
        if !resources.ports.is_empty() {
            let before = self.ports_before(position);
            let ports = &mut self.slot_mut(position).ports;
            let ports = ports.get_or_insert_with(|| before.clone());
            ports.add(&resources.ports);
        }
    }

    /// Counts what a stopped allocation gives up.
    pub(crate) fn release(&mut self, node: NodeId, resources: &AllocatedResources) {
        let Some(position) = self.position(node) else {
            return;
        };
        let slot = self.slot_mut(position);
        slot.used = slot.used.minus(resources.total);
        slot.free_allocs = slot.free_allocs.saturating_add(1);
        slot.change_held(resources, Held::remove);
        if !resources.ports.is_empty() {
            let before = self.ports_before(position);
            let ports = &mut self.slot_mut(position).ports;
            let ports = ports.get_or_insert_with(|| before.clone());
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
