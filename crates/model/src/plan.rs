//! What a scheduler proposes, and what was committed of it.

use std::collections::BTreeMap;

use crate::allocation::{Allocation, ClientStatus};
use crate::deployment::{Deployment, DeploymentStatus};
use crate::evaluation::Evaluation;
use crate::ids::{AllocId, DeploymentId, EvalId, JobKey, NodeId};

/// Everything that one run of a scheduler wants written, for one job.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    pub eval_id: EvalId,
    /// The delivery that allowed the work; empty in tests and dry runs.
    pub eval_token: String,
    /// The eval key's mod revision in the snapshot; whoever changed it since has overtaken the plan.
    pub eval_modify_index: u64,
    pub job: JobKey,
    pub priority: u8,
    /// All placements or none.
    pub all_at_once: bool,
    /// The revision of the snapshot it was made on.
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
    /// Evaluations made together with the plan: a blocked one, delayed follow-ups.
    pub followup_evals: Vec<Evaluation>,
    /// The evaluation as it is to be once the plan is wholly committed; `None`: it stays as it is.
    pub eval_outcome: Option<Box<Evaluation>>,
    /// The trace that the plan is part of, as a W3C `traceparent`; empty: none.
    pub trace_parent: String,
}

impl Plan {
    /// Tells whether committing it would change nothing but how the evaluation ended.
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
    /// Set when the node cannot tell any more: lost, or unknown.
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

/// What was committed of a plan.
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
    /// When not 0, the plan was not wholly committed: look again at this revision or later.
    pub refresh_index: u64,
}
