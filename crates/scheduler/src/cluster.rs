//! The nodes that a job may use, with what they hold once the plan so far is carried out.

use std::collections::BTreeMap;

use model::{AllocatedResources, ComparableResources, Node, NodeId};
use placement::Scope;
use state::{NodeUsage, Snapshot};

use crate::draw::Draw;

/// Scores closer than this are near-ties, between which the seed chooses: workers that plan at the
/// same time then do not all pick one node. It is the resolution that scores are shown with.
const NEAR_TIE: f64 = 0.001;

/// One node that may take something new.
#[derive(Clone, Debug)]
pub(crate) struct Slot<'a> {
    pub(crate) node: &'a Node,
    pub(crate) available: ComparableResources,
    pub(crate) usage: NodeUsage,
    /// How many live allocations of the job are on it.
    pub(crate) of_job: u32,
    /// How many of them are of the group being placed.
    pub(crate) of_group: u32,
    /// Added to its score: 0 to [`NEAR_TIE`].
    pub(crate) jitter: f64,
    /// Counts changes, so that a score worked out before the last one is known to be old.
    pub(crate) changes: u32,
}

/// The ready and eligible nodes in a job's scope.
#[derive(Clone, Debug)]
pub(crate) struct Cluster<'a> {
    /// Ordered by node id.
    pub(crate) slots: Vec<Slot<'a>>,
    /// Datacenter → nodes.
    pub(crate) nodes_available: BTreeMap<String, u32>,
}

impl<'a> Cluster<'a> {
    pub(crate) fn new(snapshot: &'a Snapshot, scope: &Scope, draw: &mut Draw) -> Self {
        let mut cluster = Self {
            slots: Vec::new(),
            nodes_available: BTreeMap::new(),
        };
        for node in snapshot.nodes().map(|node| &node.value) {
            if !node.is_schedulable() || !scope.contains(node) {
                continue;
            }
            match cluster.nodes_available.get_mut(&node.datacenter) {
                Some(count) => *count += 1,
                None => drop(cluster.nodes_available.insert(node.datacenter.clone(), 1)),
            }
            cluster.slots.push(Slot {
                node,
                available: node.available(),
                usage: snapshot.usage(node.id).cloned().unwrap_or_default(),
                of_job: 0,
                of_group: 0,
                jitter: draw.fraction() * NEAR_TIE,
                changes: 0,
            });
        }
        cluster
    }

    /// Returns the position of `node`, if it may take something new.
    pub(crate) fn position(&self, node: NodeId) -> Option<usize> {
        self.slots
            .binary_search_by_key(&node, |slot| slot.node.id)
            .ok()
    }

    /// Counts what a stopped allocation gives up.
    pub(crate) fn release(&mut self, node: NodeId, resources: &AllocatedResources) {
        if let Some(position) = self.position(node) {
            let slot = &mut self.slots[position];
            slot.usage.remove(resources);
            slot.changes += 1;
        }
    }
}
