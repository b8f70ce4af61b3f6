//! Allocations: one task group placed on one node, with its desired and its reported state.
//!
//! The two are separate objects under separate keys, because they have separate writers: the
//! plan-applier writes [`Allocation`], the node (through a gateway) writes [`AllocClient`].

use std::collections::BTreeMap;
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

/// Placement metrics: the reasons for a placement, or for a failed one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AllocMetric {
    #[serde(rename = "ev")]
    pub nodes_evaluated: u32,
    #[serde(rename = "fi", skip_serializing_if = "is_zero")]
    pub nodes_filtered: u32,
    #[serde(rename = "ex", skip_serializing_if = "is_zero")]
    pub nodes_exhausted: u32,
    /// Nodes in the job's pool and datacenters.
    #[serde(rename = "pool", skip_serializing_if = "is_zero")]
    pub nodes_in_pool: u32,
    /// The job's node pool, in metrics of failed placements; empty in placed allocations, which are
    /// stored a thousand times as often: reads take it from the job's version.
    #[serde(rename = "np", skip_serializing_if = "str::is_empty")]
    pub node_pool: Arc<str>,
    /// Constraint → nodes that failed it, as in `${attr.kernel.name} = linux`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub constraint_filtered: BTreeMap<String, u32>,
    /// Resource → nodes with too little of it, as in `cpu`, `memory`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub dimension_exhausted: BTreeMap<String, u32>,
    /// Node class → filtered nodes; nodes without a class are left out.
    #[serde(rename = "cf", skip_serializing_if = "BTreeMap::is_empty")]
    pub class_filtered: BTreeMap<String, u32>,
    /// Node class → exhausted nodes; nodes without a class are left out.
    #[serde(rename = "ce", skip_serializing_if = "BTreeMap::is_empty")]
    pub class_exhausted: BTreeMap<String, u32>,
    /// Task → resources that all unplaced allocations together need for it.
    #[serde(rename = "re", skip_serializing_if = "BTreeMap::is_empty")]
    pub resources_exhausted: BTreeMap<String, ExhaustedResources>,
    /// Datacenter → ready nodes in it.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub nodes_available: BTreeMap<String, u32>,
    /// The chosen node's score in thousandths.
    #[serde(rename = "s", skip_serializing_if = "is_level")]
    pub score_per_mille: i32,
    /// Parts of the chosen node's score.
    #[serde(rename = "p", skip_serializing_if = "Option::is_none")]
    pub score_parts: Option<ScoreParts>,
    /// The next best nodes, best first; kept for the first placement of each group in a plan.
    #[serde(rename = "ru", skip_serializing_if = "Vec::is_empty")]
    pub runners_up: Vec<NodeScore>,
    /// Further placements of the group that were skipped after the first one failed.
    #[serde(skip_serializing_if = "is_zero")]
    pub coalesced_failures: u32,
}

fn is_zero(value: &u32) -> bool {
    *value == 0
}

fn is_level(score: &i32) -> bool {
    *score == 0
}

/// Resources that a task needs and that some node had too little of; 0: no node had too little.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ExhaustedResources {
    #[serde(rename = "cpu", skip_serializing_if = "is_nothing")]
    pub cpu_mhz: u64,
    #[serde(rename = "mem", skip_serializing_if = "is_nothing")]
    pub memory_mib: u64,
}

fn is_nothing(amount: &u64) -> bool {
    *amount == 0
}

/// Parts of a node's score, in thousandths; `None`: the scorer does not apply.
///
/// The score is the mean of the parts, or their sum where that is below 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ScoreParts {
    /// 0 to 1000: utilization of the node with the allocation, or free room with the spread algorithm.
    #[serde(rename = "b")]
    pub fit: i32,
    /// Below 0: other allocations of the group are on the node.
    #[serde(rename = "a", skip_serializing_if = "Option::is_none")]
    pub anti_affinity: Option<i32>,
    /// −1000: a predecessor failed on the node.
    #[serde(rename = "r", skip_serializing_if = "Option::is_none")]
    pub reschedule_penalty: Option<i32>,
    /// −1000 to 1000: weights of the matching affinities.
    #[serde(rename = "n", skip_serializing_if = "Option::is_none")]
    pub affinity: Option<i32>,
    /// −1000 to 1000: distance of the node's values from their target share.
    #[serde(rename = "w", skip_serializing_if = "Option::is_none")]
    pub spread: Option<i32>,
    /// −1000 to 1000: weights of the matching affinities of device requests.
    #[serde(rename = "d", skip_serializing_if = "Option::is_none")]
    pub devices: Option<i32>,
    /// 0 to 1000: higher for fewer victims with lower priorities.
    #[serde(rename = "e", skip_serializing_if = "Option::is_none")]
    pub preemption: Option<i32>,
}

impl ScoreParts {
    /// Returns the applicable scorers with their values, under Nomad's names.
    pub fn named(&self) -> impl Iterator<Item = (&'static str, i32)> {
        [
            ("binpack", Some(self.fit)),
            ("devices", self.devices),
            ("job-anti-affinity", self.anti_affinity),
            ("node-reschedule-penalty", self.reschedule_penalty),
            ("node-affinity", self.affinity),
            ("allocation-spread", self.spread),
            ("preemption", self.preemption),
        ]
        .into_iter()
        .filter_map(|(name, value)| Some((name, value?)))
    }
}

/// Score of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeScore {
    #[serde(rename = "id")]
    pub node_id: NodeId,
    /// The score, in thousandths.
    #[serde(rename = "s")]
    pub per_mille: i32,
    #[serde(flatten)]
    pub parts: ScoreParts,
}
