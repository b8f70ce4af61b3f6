//! The scheduler's table of nodes: one small row per node, adjacent in memory, and the node kinds.
//!
//! A scan of every node of a large cluster for every evaluation is affordable only at a few
//! nanoseconds per node. So a row holds the amounts and little else; facts that constraints read and
//! several nodes share stand once, in the kind. Updated with each change of a node or of its usage.
//! The crate `placement` decides which kinds suit a group.

use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use imbl::{OrdSet, Vector};
use model::node::UNIQUE_PREFIX;
use model::{ComparableResources, Indexed, Node, NodeId};
use rustc_hash::FxHasher;

use crate::map::Map;
use crate::usage::NodeUsage;

/// The facts that a scan reads of every node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeRow {
    pub id: NodeId,
    /// The position of its kind among [`NodeTable::kinds`].
    pub kind: u32,
    /// True if the node takes new allocations; `false` for an unused row.
    pub is_schedulable: bool,
    /// Number of ports that its allocations hold, on all addresses.
    pub port_count: u32,
    /// Number of further allocations it takes, whatever their size; below 1: none.
    pub free_allocs: i32,
    pub available: ComparableResources,
    /// The sum over its non-terminal allocations.
    pub used: ComparableResources,
}

/// Nodes that answer every constraint alike, except constraints on unique facts.
#[derive(Clone, Debug)]
pub struct NodeKind {
    /// A current or former node of this kind; valid for shared facts only.
    pub example: Arc<Indexed<Node>>,
    pub node_count: u32,
    /// Number of them that take new allocations.
    pub schedulable_count: u32,
}

/// Every node's row, and the kinds. Cheap to clone.
///
/// Shape: a node keeps its position until it is deleted; positions of deleted nodes are reused, the
/// lowest first.
#[derive(Clone, Debug, Default)]
pub struct NodeTable {
    rows: Vector<NodeRow>,
    /// Apart from `rows`, because these change seldom; `None` for an unused row.
    nodes: Vector<Option<Arc<Indexed<Node>>>>,
    positions: Map<NodeId, u32>,
    free_rows: OrdSet<u32>,
    kinds: Vector<Option<NodeKind>>,
    free_kinds: OrdSet<u32>,
    /// Hash of the shared facts → its kinds: one, unless hashes collide.
    kinds_by_hash: Map<u64, Vec<u32>>,
}

impl NodeTable {
    /// Returns the number of rows, unused ones included: one more than the last position.
    pub fn row_count(&self) -> usize {
        self.rows.len()
    }

    /// Returns all rows in order, in contiguous slices.
    pub fn chunks(&self) -> impl Iterator<Item = &[NodeRow]> {
        self.rows.leaves()
    }

    /// Returns the row of the node at `position`.
    ///
    /// # Panics
    /// Panics when there is no such position.
    pub fn row(&self, position: usize) -> &NodeRow {
        &self.rows[position]
    }

    /// Returns the node at `position`; `None` for an unused row.
    pub fn node(&self, position: usize) -> Option<&Arc<Indexed<Node>>> {
        self.nodes.get(position)?.as_ref()
    }

    pub fn position(&self, id: NodeId) -> Option<usize> {
        self.positions.get(&id).map(|position| *position as usize)
    }

    /// Returns the kinds by position; `None` for an unused position.
    pub fn kinds(&self) -> impl ExactSizeIterator<Item = Option<&NodeKind>> {
        self.kinds.iter().map(Option::as_ref)
    }

    pub(crate) fn put(&mut self, node: Arc<Indexed<Node>>, usage: Option<&NodeUsage>) {
        let id = node.value.id;
        let row = NodeRow {
            id,
            kind: 0,
            is_schedulable: node.value.is_schedulable(),
            port_count: usage.map_or(0, |usage| usage.ports.len()),
            free_allocs: free_allocs(&node.value, usage),
            available: node.value.available(),
            used: usage.map_or_else(ComparableResources::default, |usage| usage.total),
        };
        let known = self.positions.get(&id).copied();
        if let Some(position) = known {
            let old = self.rows[position as usize];
            if self.nodes[position as usize]
                .as_ref()
                .is_some_and(|other| shares_facts(&other.value, &node.value))
            {
                self.count_kind(old.kind, 0, 0, old.is_schedulable, row.is_schedulable);
                self.rows[position as usize] = NodeRow {
                    kind: old.kind,
                    ..row
                };
                self.nodes[position as usize] = Some(node);
                return;
            }
            self.count_kind(old.kind, 1, 0, old.is_schedulable, false);
        }
        let kind = self.kind_of(&node);
        self.count_kind(kind, 0, 1, false, row.is_schedulable);
        let row = NodeRow { kind, ..row };
        let position = known.or_else(|| self.free_rows.remove_min());
        match position {
            Some(position) => {
                self.rows[position as usize] = row;
                self.nodes[position as usize] = Some(node);
                self.positions.insert(id, position);
            }
            None => {
                self.positions.insert(id, small(self.rows.len()));
                self.rows.push_back(row);
                self.nodes.push_back(Some(node));
            }
        }
    }

    pub(crate) fn remove(&mut self, id: NodeId) {
        let Some(position) = self.positions.remove(&id) else {
            return;
        };
        let old = self.rows[position as usize];
        self.count_kind(old.kind, 1, 0, old.is_schedulable, false);
        self.rows[position as usize] = NodeRow {
            is_schedulable: false,
            ..old
        };
        self.nodes[position as usize] = None;
        self.free_rows.insert(position);
    }

    /// Sets the usage of a node.
    pub(crate) fn set_usage(&mut self, id: NodeId, usage: Option<&NodeUsage>) {
        let Some(position) = self.position(id) else {
            return;
        };
        let old = self.rows[position];
        let node = self.nodes[position].as_ref();
        let free_allocs = node.map_or(0, |node| free_allocs(&node.value, usage));
        let new = NodeRow {
            port_count: usage.map_or(0, |usage| usage.ports.len()),
            free_allocs,
            used: usage.map_or_else(ComparableResources::default, |usage| usage.total),
            ..old
        };
        if new != old {
            self.rows[position] = new;
        }
    }

    /// Returns the kind of `node`; creates it when there is none yet.
    fn kind_of(&mut self, node: &Arc<Indexed<Node>>) -> u32 {
        let hash = hash_of_facts(&node.value);
        let mut same_hash = self.kinds_by_hash.get(&hash).cloned().unwrap_or_default();
        let found = same_hash.iter().copied().find(|kind| {
            let known = self.kinds[*kind as usize].as_ref();
            known.is_some_and(|known| shares_facts(&known.example.value, &node.value))
        });
        if let Some(kind) = found {
            return kind;
        }
        let made = NodeKind {
            example: Arc::clone(node),
            node_count: 0,
            schedulable_count: 0,
        };
        let kind = match self.free_kinds.remove_min() {
            Some(kind) => {
                self.kinds[kind as usize] = Some(made);
                kind
            }
            None => {
                self.kinds.push_back(Some(made));
                small(self.kinds.len() - 1)
            }
        };
        same_hash.push(kind);
        self.kinds_by_hash.insert(hash, same_hash);
        kind
    }

    /// Counts nodes that join and leave a kind; removes a kind without nodes.
    fn count_kind(&mut self, kind: u32, gone: u32, come: u32, could: bool, can: bool) {
        let Some(Some(counts)) = self.kinds.get_mut(kind as usize) else {
            return;
        };
        counts.node_count = counts.node_count + come - gone;
        counts.schedulable_count = counts.schedulable_count + u32::from(can) - u32::from(could);
        if counts.node_count > 0 {
            return;
        }
        let hash = hash_of_facts(&counts.example.value);
        self.kinds[kind as usize] = None;
        self.free_kinds.insert(kind);
        if let Some(same_hash) = self.kinds_by_hash.get_mut(&hash) {
            same_hash.retain(|other| *other != kind);
            if same_hash.is_empty() {
                self.kinds_by_hash.remove(&hash);
            }
        }
    }
}

fn small(position: usize) -> u32 {
    u32::try_from(position).expect("no cluster has four thousand million nodes")
}

/// Returns the number of further allocations that `node` takes; `i32::MAX` without a limit.
fn free_allocs(node: &Node, usage: Option<&NodeUsage>) -> i32 {
    if node.max_allocs == 0 {
        return i32::MAX;
    }
    let count = usage.map_or(0, |usage| usage.alloc_count);
    let free = i64::from(node.max_allocs) - i64::from(count);
    i32::try_from(free).unwrap_or(i32::MAX)
}

/// Returns the facts that several nodes may share.
fn shared(facts: &BTreeMap<String, String>) -> impl Iterator<Item = (&String, &String)> {
    facts
        .iter()
        .filter(|(key, _)| !key.starts_with(UNIQUE_PREFIX))
}

/// Returns each of the node's drivers, and whether it can start tasks.
fn drivers(node: &Node) -> impl Iterator<Item = (&String, bool)> {
    let drivers = node.drivers.iter();
    drivers.map(|(name, info)| (name, info.detected && info.healthy))
}

/// Returns the device facts that several nodes may share: everything but the instances.
fn devices(node: &Node) -> impl Iterator<Item = impl PartialEq> {
    node.devices.iter().map(|device| {
        let attributes: Vec<_> = shared(&device.attributes).collect();
        (
            &device.vendor,
            &device.device_type,
            &device.name,
            attributes,
        )
    })
}

/// Returns whether both are of one kind: they differ in amounts, status, ports and unique facts only.
fn shares_facts(left: &Node, right: &Node) -> bool {
    left.computed_class == right.computed_class
        && left.datacenter == right.datacenter
        && left.node_pool == right.node_pool
        && left.node_class == right.node_class
        && drivers(left).eq(drivers(right))
        && shared(&left.attributes).eq(shared(&right.attributes))
        && shared(&left.meta).eq(shared(&right.meta))
        && devices(left).eq(devices(right))
}

fn hash_of_facts(node: &Node) -> u64 {
    let mut hasher = FxHasher::default();
    node.computed_class.hash(&mut hasher);
    node.datacenter.hash(&mut hasher);
    node.node_pool.hash(&mut hasher);
    node.node_class.hash(&mut hasher);
    for fact in drivers(node) {
        fact.hash(&mut hasher);
    }
    for fact in shared(&node.attributes).chain(shared(&node.meta)) {
        fact.hash(&mut hasher);
    }
    hasher.finish()
}
