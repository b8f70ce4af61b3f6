//! Verification of one plan against one snapshot: the nodes' parts that still fit, and their writes.
//!
//! A node's part (its stops, evictions and placements) is accepted or rejected as one. Nodes do not
//! depend on each other, so they may be checked in parallel ([`Verification::check_node`]). Checks
//! across nodes follow: a placement is withheld when the allocation that it replaces stays.

mod csi;
mod evictions;
mod node;
mod plan_writer;
mod preconditions;
pub(crate) mod verdict;
mod volumes;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use model::{AllocId, NodeId, Plan, Timestamp};
use state::Snapshot;

use crate::pending::Pending;
use crate::split::split;
pub use verdict::{Accepted, NodeOutcome, PlanRefusal, PlanVerification};

/// A plan under verification against the newest committed state and the pending writes.
#[derive(Clone, Copy, Debug)]
pub struct Verification<'a> {
    snapshot: &'a Snapshot,
    pending: &'a Pending,
    plan: &'a Plan,
}

impl<'a> Verification<'a> {
    pub fn new(snapshot: &'a Snapshot, pending: &'a Pending, plan: &'a Plan) -> Self {
        Self {
            snapshot,
            pending,
            plan,
        }
    }

    /// Returns the nodes that the plan touches, ordered by id.
    pub fn nodes(&self) -> Vec<NodeId> {
        let plan = self.plan;
        let stops = plan.stops.keys().chain(plan.preemptions.keys());
        let mut nodes: Vec<_> = stops.chain(plan.placements.keys()).copied().collect();
        nodes.sort_unstable();
        nodes.dedup();
        nodes
    }

    /// Checks one node's part.
    pub fn check_node(&self, node_id: NodeId) -> NodeOutcome {
        match node::check(self.snapshot, self.pending, self.plan, node_id) {
            Ok(()) => NodeOutcome::Accepted,
            Err(reason) => NodeOutcome::Rejected(reason),
        }
    }

    /// Returns the schedulable nodes that rejected their part. A down or ineligible node, or one
    /// whose placement is withheld because of another node, is no bad node.
    ///
    /// Shape: `verdicts` are those of [`Self::nodes`], in that order.
    pub fn refusing(&self, verdicts: &[NodeOutcome]) -> Vec<NodeId> {
        let is_schedulable = |id: NodeId| {
            let node = self.snapshot.node(id);
            node.is_some_and(|node| node.value.is_schedulable())
        };
        let nodes = self.nodes().into_iter().zip(verdicts);
        let rejected = nodes.filter(|(id, verdict)| {
            matches!(verdict, NodeOutcome::Rejected(_)) && is_schedulable(*id)
        });
        rejected.map(|(id, _)| id).collect()
    }

    /// Checks the preconditions of the whole plan: its evaluation, job and deployments.
    ///
    /// `None`: all hold.
    pub fn check_whole(&self) -> Option<PlanVerification> {
        preconditions::check(self.snapshot, self.pending, self.plan)
            .err()
            .map(PlanVerification::from)
    }

    /// Returns the placements on accepted nodes whose predecessors should have stopped on rejected
    /// ones. The predecessors continue, so two allocations would share one name. The nodes of these
    /// placements become rejected, too.
    fn withheld(
        &self,
        accepted_nodes: &[NodeId],
        rejected_nodes: &mut BTreeMap<NodeId, String>,
    ) -> BTreeSet<AllocId> {
        let dropped = rejected_nodes
            .keys()
            .filter_map(|node| self.plan.stops.get(node))
            .flatten();
        let staying: BTreeSet<AllocId> = dropped.map(|stop| stop.alloc_id).collect();
        let mut withheld = BTreeSet::new();
        if staying.is_empty() {
            return withheld;
        }
        for node_id in accepted_nodes {
            for alloc in self.plan.placements.get(node_id).into_iter().flatten() {
                let Some(previous) = alloc.previous_alloc.filter(|id| staying.contains(id)) else {
                    continue;
                };
                withheld.insert(alloc.id);
                rejected_nodes.entry(*node_id).or_insert_with(|| {
                    format!("allocation {previous} stays, so it is not replaced")
                });
            }
        }
        withheld
    }

    /// Combines the verdicts of the nodes.
    ///
    /// Shape: `verdicts` are those of [`Self::nodes`], in that order.
    pub fn conclude(&self, verdicts: Vec<NodeOutcome>, now: Timestamp) -> PlanVerification {
        let mut accepted_nodes = Vec::with_capacity(verdicts.len());
        let mut rejected_nodes = BTreeMap::new();
        for (node_id, verdict) in self.nodes().into_iter().zip(verdicts) {
            match verdict {
                NodeOutcome::Accepted => accepted_nodes.push(node_id),
                NodeOutcome::Rejected(reason) => drop(rejected_nodes.insert(node_id, reason)),
            }
        }
        if self.plan.all_at_once && !rejected_nodes.is_empty() {
            return PlanVerification::Accepted(Accepted {
                rejected_nodes,
                base_index: self.snapshot.index(),
                ..Accepted::default()
            });
        }
        let withheld = self.withheld(&accepted_nodes, &mut rejected_nodes);
        let is_whole = rejected_nodes.is_empty();
        let writer = plan_writer::PlanWriter::new(self.snapshot, self.pending, self.plan, now);
        let Some(writes) = writer.write(&accepted_nodes, &withheld, is_whole) else {
            return PlanVerification::Waits;
        };
        PlanVerification::Accepted(Accepted {
            pieces: split(writes).into_iter().map(Arc::new).collect(),
            rejected_nodes,
            base_index: self.snapshot.index(),
        })
    }
}

/// Verifies `plan` against a snapshot of committed state, node by node, without pending writes.
pub fn verify(snapshot: &Snapshot, plan: &Plan, now: Timestamp) -> PlanVerification {
    let pending = Pending::default();
    let verification = Verification::new(snapshot, &pending, plan);
    if let Some(verdict) = verification.check_whole() {
        return verdict;
    }
    let nodes = verification.nodes();
    let verdicts = nodes
        .into_iter()
        .map(|node| verification.check_node(node))
        .collect();
    verification.conclude(verdicts, now)
}
