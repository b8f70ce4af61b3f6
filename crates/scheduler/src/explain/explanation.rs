//! Result types of an explanation.

use model::{NodeId, NodeScore, Timestamp};

use crate::explain::blocker::{PlacementBlocker, Verdict};
use crate::explain::group_status::DeploymentHold;
use crate::explain::preemption::{PreemptionCounts, PreemptionOutcome, Victim};
use crate::explain::probe::Question;

/// The explanation of an evaluation's job.
#[derive(Clone, Debug, PartialEq)]
pub struct Explanation {
    /// The revision of the explained state.
    pub index: u64,
    /// The explained version of the job; `None`: the job does not exist any more.
    pub job_version: Option<u64>,
    /// The reason why there are no groups; `None`: there are groups.
    pub empty_reason: Option<&'static str>,
    /// In the order of the job.
    pub groups: Vec<GroupExplanation>,
}

/// The explanation of one task group.
#[derive(Clone, Debug, PartialEq)]
pub struct GroupExplanation {
    pub name: String,
    /// The number of allocations that the job wants; of a system or sysbatch job, on each node.
    pub wanted: u32,
    /// Allocations that the evaluation placed or last updated, live or not.
    pub placed: u32,
    /// Live allocations, placed by any evaluation.
    pub live: u32,
    /// Completed allocations; only of batch and sysbatch jobs.
    pub done: u32,
    /// Failed allocations that wait for their reschedule delay.
    pub waiting: u32,
    /// The end of the earliest of these delays.
    pub waits_until: Option<Timestamp>,
    /// The deployment that holds back placements.
    pub hold: Option<DeploymentHold>,
    /// Allocations for which there is no node now.
    pub missing: u32,
    /// Allocations that would be placed now.
    pub would_place: u32,
    pub question: Question,
    /// The version of the job that the group is of: an older one may still be placed.
    pub job_version: u64,
    /// All nodes, each counted once.
    pub counts: Counts,
    /// Preemption on the exhausted nodes that lack nothing else, without the chosen one.
    pub preemption: PreemptionCounts,
    /// The node of the allocation, or the one it would get; `None`: no node, or all nodes.
    pub chosen: Option<Chosen>,
    /// At most [`CLASSES_MAX`], those with the most nodes first.
    pub classes: Vec<ClassExplanation>,
    pub classes_left_out: u32,
    /// The number of nodes of the classes left out.
    pub nodes_left_out: u32,
    /// The node that would need the smallest change; `None`: all nodes could take the allocation.
    pub nearest: Option<NodeExplanation>,
    /// The node of the request.
    pub node: Option<NodeExplanation>,
}

/// The maximum number of node classes in a group's explanation.
pub const CLASSES_MAX: usize = 32;

/// The maximum number of reasons of a class: a property may have as many values as there are nodes.
pub const REASONS_MAX: usize = 16;

/// Numbers of nodes by verdict.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub out_of_scope: u32,
    pub unavailable: u32,
    pub filtered: u32,
    pub exhausted: u32,
    pub outscored: u32,
    pub chosen: u32,
}

impl Counts {
    pub fn of(&self, verdict: Verdict) -> u32 {
        match verdict {
            Verdict::OutOfScope => self.out_of_scope,
            Verdict::Unavailable => self.unavailable,
            Verdict::Filtered => self.filtered,
            Verdict::Exhausted => self.exhausted,
            Verdict::Outscored => self.outscored,
            Verdict::Chosen => self.chosen,
        }
    }

    pub(super) fn add(&mut self, verdict: Verdict) {
        let count = match verdict {
            Verdict::OutOfScope => &mut self.out_of_scope,
            Verdict::Unavailable => &mut self.unavailable,
            Verdict::Filtered => &mut self.filtered,
            Verdict::Exhausted => &mut self.exhausted,
            Verdict::Outscored => &mut self.outscored,
            Verdict::Chosen => &mut self.chosen,
        };
        *count += 1;
    }

    pub fn total(&self) -> u32 {
        Verdict::ALL.iter().map(|verdict| self.of(*verdict)).sum()
    }
}

/// The nodes of one node class.
#[derive(Clone, Debug, PartialEq)]
pub struct ClassExplanation {
    /// Empty: nodes without a class.
    pub class: String,
    pub counts: Counts,
    /// The number of the group's allocations on them once the plan is applied.
    pub holds: u32,
    /// At most [`REASONS_MAX`], by verdict, then the most frequent first.
    pub reasons: Vec<Reason>,
    pub reasons_left_out: u32,
    /// The best of the outscored nodes.
    pub best: Option<Outscored>,
}

/// A reason, and the number of nodes that have it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reason {
    pub verdict: Verdict,
    pub reason: String,
    pub nodes: u32,
    /// `None`: it is no amount.
    pub missing: Option<Missing>,
}

/// The smallest and the largest amount missing on a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Missing {
    pub least: u64,
    pub most: u64,
    /// As in `MHz`.
    pub unit: &'static str,
}

/// A suitable node that is not the best.
#[derive(Clone, Debug, PartialEq)]
pub struct Outscored {
    pub node_name: String,
    pub score: NodeScore,
    /// The chosen node's score minus this one's, in thousandths; negative: this node is better by now.
    /// `None`: the chosen node could not take the allocation again.
    pub gap_per_mille: Option<i32>,
}

/// The node that an allocation has or would get.
#[derive(Clone, Debug, PartialEq)]
pub struct Chosen {
    pub node_id: NodeId,
    pub node_name: String,
    pub class: String,
    /// `None`: it could not take the allocation again.
    pub score: Option<NodeScore>,
    /// Chosen regardless of the score: it has the predecessor's disk.
    pub keeps_disk: bool,
    /// Allocations that would be evicted first.
    pub victims: Vec<Victim>,
}

/// The explanation of one node.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeExplanation {
    pub node_id: NodeId,
    pub node_name: String,
    pub class: String,
    pub verdict: Verdict,
    /// The number of the group's allocations on it once the plan is applied.
    pub holds: u32,
    /// Everything that rules the node out.
    pub blockers: Vec<PlacementBlocker>,
    /// `None`: the node has room, lacks more than room, or has no allocations of other jobs.
    pub preemption: Option<PreemptionOutcome>,
    /// The node's score, after preemption if that is needed; `None`: it cannot take an allocation.
    pub score: Option<NodeScore>,
}
