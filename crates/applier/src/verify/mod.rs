//! Judges one plan against one snapshot: which nodes' parts still fit, and what is written for them.
//!
//! A node's part (its stops, evictions and placements) is accepted or rejected as one; nodes do
//! not depend on each other, so they may be checked in parallel ([`Verification::check_node`]).
//! Only afterwards is looked across nodes: what replaces an allocation that stays is withheld.

mod evictions;
mod node;
mod volumes;
mod whole;
mod writes;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use model::{AllocId, NodeId, Plan, Timestamp};
use state::Snapshot;

use crate::cut::{Piece, cut};
use crate::pending::Pending;
pub use writes::Writes;

/// What may be done about a plan.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// Commit what was accepted.
    Accepted(Accepted),
    /// The plan was made on what no longer holds: nothing of it may be written.
    Refused(Refusal),
    /// It touches what an uncommitted plan writes, whose revision is not known yet: verify it again
    /// once that one is settled.
    Waits,
}

/// Why a whole plan is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    pub reason: String,
    /// A snapshot at this revision or later shows what has changed.
    pub refresh_index: u64,
}

/// The part of a plan that may be committed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Accepted {
    /// To be committed one after the other; none when there is nothing to write.
    pub pieces: Vec<Arc<Piece>>,
    /// Nodes whose part is left out, with the reason.
    pub rejected_nodes: BTreeMap<NodeId, String>,
    /// The revision of the snapshot that it was checked against.
    pub base_index: u64,
}

/// What becomes of one node's part of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NodeVerdict {
    Accepted,
    Rejected(String),
}

/// A plan beside what it is checked against: the newest committed state, and what is on its way.
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

    /// Judges one node's part.
    pub fn check_node(&self, node_id: NodeId) -> NodeVerdict {
        match node::check(self.snapshot, self.pending, self.plan, node_id) {
            Ok(()) => NodeVerdict::Accepted,
            Err(reason) => NodeVerdict::Rejected(reason),
        }
    }

    /// Judges what concerns the whole plan: its evaluation, job and deployments.
    ///
    /// `None`: nothing speaks against it.
    pub fn check_whole(&self) -> Option<Verdict> {
        whole::check(self.snapshot, self.pending, self.plan)
            .err()
            .map(Verdict::from)
    }

    /// Returns the placements on accepted nodes whose predecessors were to be stopped on rejected
    /// ones: as those go on, two would have one name. Their nodes join the rejected.
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

    /// Puts the nodes' verdicts together.
    ///
    /// Shape: `verdicts` are those of [`Self::nodes`], in that order.
    pub fn conclude(&self, verdicts: Vec<NodeVerdict>, now: Timestamp) -> Verdict {
        let mut accepted_nodes = Vec::with_capacity(verdicts.len());
        let mut rejected_nodes = BTreeMap::new();
        for (node_id, verdict) in self.nodes().into_iter().zip(verdicts) {
            match verdict {
                NodeVerdict::Accepted => accepted_nodes.push(node_id),
                NodeVerdict::Rejected(reason) => drop(rejected_nodes.insert(node_id, reason)),
            }
        }
        if self.plan.all_at_once && !rejected_nodes.is_empty() {
            return Verdict::Accepted(Accepted {
                rejected_nodes,
                base_index: self.snapshot.index(),
                ..Accepted::default()
            });
        }
        let withheld = self.withheld(&accepted_nodes, &mut rejected_nodes);
        let is_whole = rejected_nodes.is_empty();
        let writer = writes::Writer::new(self.snapshot, self.pending, self.plan, now);
        let Some(writes) = writer.write(&accepted_nodes, &withheld, is_whole) else {
            return Verdict::Waits;
        };
        Verdict::Accepted(Accepted {
            pieces: cut(writes).into_iter().map(Arc::new).collect(),
            rejected_nodes,
            base_index: self.snapshot.index(),
        })
    }
}

/// Judges `plan` against a snapshot of committed state, node after node, with nothing on its way.
pub fn verify(snapshot: &Snapshot, plan: &Plan, now: Timestamp) -> Verdict {
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
