//! Evaluations: requests to schedule one job, with cause and outcome.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::alloc_metric::AllocMetric;
use crate::ids::{DeploymentId, EvalId, JobKey, NodeId};
use crate::job::JobType;
use crate::time::Timestamp;

/// A request to schedule one job: the value of `eval/<id>`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evaluation {
    /// Stands in the key, so the stored value leaves it out; filled in on read.
    #[serde(skip)]
    pub id: EvalId,
    #[serde(flatten)]
    pub job: JobKey,
    #[serde(rename = "type")]
    pub job_type: JobType,
    pub priority: u8,
    pub triggered_by: TriggeredBy,
    pub status: EvalStatus,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub status_description: String,
    /// The node whose change caused the evaluation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_id: Option<NodeId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deployment_id: Option<DeploymentId>,
    /// Earliest time of delivery; never: at once.
    #[serde(default, skip_serializing_if = "Timestamp::is_never")]
    pub wait_until: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_eval: Option<EvalId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous_eval: Option<EvalId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocked_eval: Option<EvalId>,
    /// Task group → reasons for its failed placements.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub failed_task_groups: BTreeMap<String, AllocMetric>,
    /// Task group → allocations without a place.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub queued_allocs: BTreeMap<String, u32>,
    /// Blocked only: computed node class → whether its nodes are eligible.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub class_eligibility: BTreeMap<String, bool>,
    /// Blocked only: the constraints depend on more than the node class, so a change of any node may
    /// unblock it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub escaped_computed_class: bool,
    /// The revision of the snapshot that was scheduled on; 0: not scheduled yet.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub snapshot_index: u64,
    pub create_time: Timestamp,
    pub modify_time: Timestamp,
    /// Trace context of its creation, as a W3C `traceparent`; empty: none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub trace_parent: String,
}

fn is_zero(value: &u64) -> bool {
    *value == 0
}

impl Evaluation {
    /// Creates a pending evaluation with the required fields.
    pub fn pending(
        id: EvalId,
        job: JobKey,
        job_type: JobType,
        priority: u8,
        triggered_by: TriggeredBy,
        now: Timestamp,
    ) -> Self {
        Self {
            id,
            job,
            job_type,
            priority,
            triggered_by,
            status: EvalStatus::Pending,
            status_description: String::new(),
            node_id: None,
            deployment_id: None,
            wait_until: Timestamp::NEVER,
            next_eval: None,
            previous_eval: None,
            blocked_eval: None,
            failed_task_groups: BTreeMap::new(),
            queued_allocs: BTreeMap::new(),
            class_eligibility: BTreeMap::new(),
            escaped_computed_class: false,
            snapshot_index: 0,
            create_time: now,
            modify_time: now,
            trace_parent: String::new(),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EvalStatus {
    Pending,
    Blocked,
    Complete,
    Failed,
    Canceled,
}

impl EvalStatus {
    pub const ALL: [Self; 5] = [
        Self::Pending,
        Self::Blocked,
        Self::Complete,
        Self::Failed,
        Self::Canceled,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Blocked => "blocked",
            Self::Complete => "complete",
            Self::Failed => "failed",
            Self::Canceled => "canceled",
        }
    }

    pub fn is_terminal(self) -> bool {
        matches!(self, Self::Complete | Self::Failed | Self::Canceled)
    }
}

/// Cause of an evaluation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TriggeredBy {
    JobRegister,
    JobDeregister,
    PeriodicJob,
    NodeDrain,
    NodeUpdate,
    AllocStop,
    Scheduled,
    RollingUpdate,
    DeploymentWatcher,
    FailedFollowUp,
    MaxPlanAttempts,
    AllocFailure,
    QueuedAllocs,
    Preemption,
    JobScaling,
    MaxDisconnectTimeout,
    Reconnect,
    AllocReschedule,
}

impl TriggeredBy {
    pub const ALL: [Self; 18] = [
        Self::JobRegister,
        Self::JobDeregister,
        Self::PeriodicJob,
        Self::NodeDrain,
        Self::NodeUpdate,
        Self::AllocStop,
        Self::Scheduled,
        Self::RollingUpdate,
        Self::DeploymentWatcher,
        Self::FailedFollowUp,
        Self::MaxPlanAttempts,
        Self::AllocFailure,
        Self::QueuedAllocs,
        Self::Preemption,
        Self::JobScaling,
        Self::MaxDisconnectTimeout,
        Self::Reconnect,
        Self::AllocReschedule,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::JobRegister => "job-register",
            Self::JobDeregister => "job-deregister",
            Self::PeriodicJob => "periodic-job",
            Self::NodeDrain => "node-drain",
            Self::NodeUpdate => "node-update",
            Self::AllocStop => "alloc-stop",
            Self::Scheduled => "scheduled",
            Self::RollingUpdate => "rolling-update",
            Self::DeploymentWatcher => "deployment-watcher",
            Self::FailedFollowUp => "failed-follow-up",
            Self::MaxPlanAttempts => "max-plan-attempts",
            Self::AllocFailure => "alloc-failure",
            Self::QueuedAllocs => "queued-allocs",
            Self::Preemption => "preemption",
            Self::JobScaling => "job-scaling",
            Self::MaxDisconnectTimeout => "max-disconnect-timeout",
            Self::Reconnect => "reconnect",
            Self::AllocReschedule => "alloc-reschedule",
        }
    }
}
