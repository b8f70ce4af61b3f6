//! Allocations: one task group placed on one node, with its desired and its reported state.
//!
//! The two are separate objects under separate keys, because they have separate writers: the
//! plan-applier writes [`Allocation`], the node (through a gateway) writes [`AllocClient`].

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::ids::{AllocId, DeploymentId, EvalId, JobKey, NodeId};
use crate::network_status::NetworkStatus;
use crate::resources::AllocatedResources;
use crate::service::ServiceRegistration;
use crate::stored_metric::StoredMetric;
use crate::task_states::TaskStates;
use crate::time::{Timestamp, duration_ns};

/// The desired state of an allocation: the value of `alloc/<id>`, at most 400 bytes as stored when
/// it is a plain placement.
///
/// It names its job version and does not carry the job; its name is derived.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Allocation {
    /// Stands in the key, so the stored value leaves it out; filled in on read.
    #[serde(skip)]
    pub id: AllocId,
    #[serde(rename = "eval")]
    pub eval_id: EvalId,
    #[serde(rename = "node")]
    pub node_id: NodeId,
    #[serde(rename = "ns")]
    pub namespace: Arc<str>,
    #[serde(rename = "job")]
    pub job_id: Arc<str>,
    #[serde(rename = "v")]
    pub job_version: u64,
    /// The create index of the job, which tells its incarnations apart.
    #[serde(rename = "jci")]
    pub job_create_index: u64,
    #[serde(rename = "group")]
    pub task_group: Arc<str>,
    /// The number in the name `job.group[number]`.
    #[serde(rename = "n")]
    pub name_index: u32,
    #[serde(rename = "res")]
    pub resources: AllocatedResources,
    #[serde(
        rename = "want",
        default,
        skip_serializing_if = "DesiredStatus::is_run"
    )]
    pub desired_status: DesiredStatus,
    #[serde(rename = "why", default, skip_serializing_if = "String::is_empty")]
    pub desired_description: String,
    #[serde(default, skip_serializing_if = "DesiredTransition::is_none")]
    pub transition: DesiredTransition,
    #[serde(rename = "dep", default, skip_serializing_if = "Option::is_none")]
    pub deployment_id: Option<DeploymentId>,
    #[serde(default, skip_serializing_if = "is_false")]
    pub canary: bool,
    /// Status set by the servers (lost, unknown) because the node cannot report.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_status_override: Option<ClientStatus>,
    /// The time at which the servers set the status to unknown; never: they did not.
    #[serde(default, skip_serializing_if = "Timestamp::is_never")]
    pub unknown_since: Timestamp,
    #[serde(rename = "prev", default, skip_serializing_if = "Option::is_none")]
    pub previous_alloc: Option<AllocId>,
    #[serde(rename = "next", default, skip_serializing_if = "Option::is_none")]
    pub next_alloc: Option<AllocId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub followup_eval_id: Option<EvalId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preempted_by: Option<AllocId>,
    /// Allocations of other jobs on its node that were preempted for it.
    #[serde(rename = "pre", default, skip_serializing_if = "Vec::is_empty")]
    pub preempted_allocs: Vec<AllocId>,
    /// Oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reschedules: Vec<RescheduleEvent>,
    #[serde(rename = "t")]
    pub create_time: Timestamp,
    #[serde(rename = "mt", default, skip_serializing_if = "Timestamp::is_never")]
    pub modify_time: Timestamp,
    #[serde(rename = "m", default, skip_serializing_if = "Option::is_none")]
    pub metric: Option<StoredMetric>,
}

fn is_false(value: &bool) -> bool {
    !value
}

impl Allocation {
    pub fn job_key(&self) -> JobKey {
        JobKey {
            namespace: Arc::clone(&self.namespace),
            job_id: Arc::clone(&self.job_id),
        }
    }

    /// Returns the name `job.group[number]`.
    pub fn name(&self) -> String {
        format!("{}.{}[{}]", self.job_id, self.task_group, self.name_index)
    }

    /// Tells whether the servers want it stopped or evicted.
    pub fn is_server_terminal(&self) -> bool {
        self.desired_status != DesiredStatus::Run
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DesiredStatus {
    #[default]
    Run,
    Stop,
    Evict,
}

impl DesiredStatus {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Run => "run",
            Self::Stop => "stop",
            Self::Evict => "evict",
        }
    }

    fn is_run(&self) -> bool {
        *self == Self::Run
    }
}

/// Requests about an allocation: to the scheduler to migrate, stop or reschedule it, and to its node to
/// skip its shutdown delays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct DesiredTransition {
    #[serde(skip_serializing_if = "is_false")]
    pub migrate: bool,
    #[serde(skip_serializing_if = "is_false")]
    pub migrate_disable_placement: bool,
    #[serde(skip_serializing_if = "is_false")]
    pub reschedule: bool,
    #[serde(skip_serializing_if = "is_false")]
    pub force_reschedule: bool,
    #[serde(skip_serializing_if = "is_false")]
    pub no_shutdown_delay: bool,
}

impl DesiredTransition {
    fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

/// One replacement of a failed allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct RescheduleEvent {
    pub time: Timestamp,
    pub previous_alloc: AllocId,
    pub previous_node: NodeId,
    #[serde(with = "duration_ns")]
    pub delay: Duration,
}

/// The reported state of an allocation: the value of `alloc-client/<id>`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AllocClient {
    pub status: ClientStatus,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    #[serde(default, skip_serializing_if = "TaskStates::is_empty")]
    pub task_states: TaskStates,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub health: Option<DeploymentHealth>,
    /// Registrations of its services. A part of the report that is stored under a key of its own, so the
    /// stored value leaves it out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub services: Vec<ServiceRegistration>,
    /// `None`: the tasks use the node's network, or their own is not set up yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<Box<NetworkStatus>>,
    /// Report number: later reports have higher numbers. 0: the node does not number its reports.
    #[serde(default, skip_serializing_if = "is_unnumbered")]
    pub report: u64,
    pub modify_time: Timestamp,
}

fn is_unnumbered(report: &u64) -> bool {
    *report == 0
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ClientStatus {
    #[default]
    Pending,
    Running,
    Complete,
    Failed,
    Lost,
    Unknown,
}

impl ClientStatus {
    pub const ALL: [Self; 6] = [
        Self::Pending,
        Self::Running,
        Self::Complete,
        Self::Failed,
        Self::Lost,
        Self::Unknown,
    ];

    /// Reads the word of [`Self::as_str`]; `None`: another word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == word)
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Running => "running",
            Self::Complete => "complete",
            Self::Failed => "failed",
            Self::Lost => "lost",
            Self::Unknown => "unknown",
        }
    }

    /// Tells whether no task of the allocation runs any more.
    pub fn is_terminal(self) -> bool {
        matches!(self, Self::Complete | Self::Failed | Self::Lost)
    }
}

/// The health check result of an allocation: for its deployment, or without one for drains, which
/// wait for healthy replacements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct DeploymentHealth {
    pub healthy: bool,
    pub time: Timestamp,
    /// The deployment of the result: a new deployment needs a new result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deployment_id: Option<DeploymentId>,
}
