//! Plans: the changes that a scheduler proposes, and the committed parts.

use std::collections::BTreeMap;

use crate::allocation::{Allocation, ClientStatus};
use crate::deployment::{Deployment, DeploymentStatus};
use crate::evaluation::Evaluation;
use crate::ids::{AllocId, DeploymentId, EvalId, JobKey, NodeId};

/// The changes that one run of a scheduler proposes, for one job.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    pub eval_id: EvalId,
    /// Token of the evaluation's delivery; empty in tests and dry runs.
    pub eval_token: String,
    /// The eval key's mod revision in the snapshot; a later change makes the plan stale.
    pub eval_modify_index: u64,
    pub job: JobKey,
    pub priority: u8,
    /// Commit the plan completely or not at all.
    pub all_at_once: bool,
    /// The revision of the snapshot that the plan was made on.
    pub snapshot_index: u64,
    /// The job key's mod revision in that snapshot; 0: the job was purged.
    pub job_modify_index: u64,
    /// Node → allocations to stop there.
    pub stops: BTreeMap<NodeId, Vec<Stop>>,
    /// Node → new allocations and in-place updates there.
    pub placements: BTreeMap<NodeId, Vec<Allocation>>,
    /// Node → allocations of other jobs to evict there.
    pub preemptions: BTreeMap<NodeId, Vec<Stop>>,
    /// A deployment to create or to replace.
    pub deployment: Option<Deployment>,
    pub deployment_updates: Vec<DeploymentUpdate>,
    /// Evaluations created together with the plan: a blocked one, delayed follow-ups.
    pub followup_evals: Vec<Evaluation>,
    /// The evaluation after a complete commit of the plan; `None`: unchanged.
    pub eval_outcome: Option<Box<Evaluation>>,
    /// Trace context as a W3C `traceparent`; empty: none.
    pub trace_parent: String,
}

impl Plan {
    /// Tells whether the plan changes nothing but the evaluation's outcome.
    pub fn is_no_op(&self) -> bool {
        self.stops.values().all(Vec::is_empty)
            && self.placements.values().all(Vec::is_empty)
            && self.preemptions.values().all(Vec::is_empty)
            && self.deployment.is_none()
            && self.deployment_updates.is_empty()
            && self.followup_evals.is_empty()
    }

    pub fn placement_count(&self) -> usize {
        self.placements.values().map(Vec::len).sum()
    }
}

/// The end of one allocation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stop {
    pub alloc_id: AllocId,
    pub description: String,
    /// Lost or unknown, when the node cannot report.
    pub client_status: Option<ClientStatus>,
    pub followup_eval_id: Option<EvalId>,
    pub preempted_by: Option<AllocId>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeploymentUpdate {
    pub deployment_id: DeploymentId,
    pub status: DeploymentStatus,
    pub description: String,
}

/// The committed parts of a plan.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PlanResult {
    /// The ids of the placements that were committed.
    pub placed: Vec<AllocId>,
    /// Nodes whose part was refused, with the reason.
    pub rejected_nodes: BTreeMap<NodeId, String>,
    /// The whole plan was refused, with the reason; nothing was written.
    pub refused: Option<String>,
    /// The revision of the commit; 0: nothing was written.
    pub commit_index: u64,
    /// Not 0: the plan was not committed completely; plan again on a snapshot with this index or a later
    /// one.
    pub refresh_index: u64,
}
