//! Kafila's nouns and their arithmetic: jobs, nodes, evaluations, plans, allocations.
//!
//! In reading order: [`ids`] names things; [`job`] is a job with every default filled in, the form
//! that is stored; [`needs_new_tasks`] decides between updates in place and replacements; [`launch`]
//! is about jobs with children, [`scaling`] about counts that change, [`service`] about addresses and
//! checks; [`node`] is a machine,
//! [`introduction`] the way to its first certificate, [`revocation`] the loss of its rights, [`drain`]
//! the migration of its allocations, [`node_pool`] a named set of nodes, [`namespace`] a named set of
//! jobs; [`evaluation`] is a request to schedule a job; [`scheduler_config`] is the operators'
//! configuration of schedulers; [`plan`] is a scheduler's proposal; [`allocation`] is one task group
//! placed on one node; [`deployment`] is the rollout of one job version; [`volume`] is a registered
//! directory of a node, [`csi`] a volume of a storage system; [`keyring`] has the keys that sign tokens of
//! tasks; [`variable`] is a sealed set of texts; [`etcd`] is the status of etcd's members, [`process`] a
//! running service. [`refusal`] sorts refused requests into the kinds that an API has codes for.
//!
//! No type here carries its own index: an object's create and modify index are the revisions of
//! its key, and [`Indexed`] adds them when it is read. Nothing here does I/O or knows the time.

mod alloc_metric;
mod alloc_path;
pub mod allocation;
pub mod artifact;
pub mod capability;
pub mod children;
pub mod constraint;
pub mod consul;
pub mod csi;
mod delay_series;
pub mod deployment;
pub mod drain;
pub mod etcd;
pub mod evaluation;
mod exact;
pub mod field_error;
pub mod glob;
pub mod ids;
pub mod introduction;
pub mod job;
mod job_tags;
pub mod keyring;
pub mod launch;
pub mod leader;
pub mod memory_max;
mod name;
pub mod namespace;
mod network_status;
mod new_tasks;
pub mod node;
mod node_drain;
pub mod node_pool;
pub mod plan;
pub mod process;
pub mod refusal;
pub mod resources;
mod restart_scope;
pub mod revocation;
pub mod scaling;
pub mod scheduler_config;
pub mod service;
pub mod signal;
mod stored_metric;
pub mod tally;
pub mod task_state;
mod task_states;
pub mod template;
pub mod time;
pub mod variable;
pub mod vault;
pub mod volume;
pub mod workload_identity;

pub use alloc_metric::{AllocMetric, ExhaustedResources, NodeScore, ScoreParts};
pub use alloc_path::AllocPath;
pub use allocation::{
    AllocClient, Allocation, ClientStatus, DeploymentHealth, DesiredStatus, DesiredTransition,
};
pub use artifact::{Artifact, ArtifactMode};
pub use constraint::{Affinity, Constraint, Operator, Spread, SpreadTarget};
pub use csi::{
    CsiAttachment, CsiAttachmentKey, CsiPluginInfo, CsiPluginTask, CsiPluginType, CsiVolume,
    CsiVolumeKey, MountOptions,
};
pub use deployment::{Deployment, DeploymentCounts, DeploymentGroup, DeploymentStatus};
pub use drain::{DrainStatus, DrainStrategy, LastDrain, NodeEvent};
pub use etcd::EtcdMember;
pub use evaluation::{EvalStatus, Evaluation, TriggeredBy};
pub use field_error::{FieldError, FieldErrors};
pub use ids::{
    AllocId, DeploymentId, EvalId, IntroductionTokenId, JobKey, NodeId, SigningKeyId,
    VolumeClaimId, VolumeId,
};
pub use introduction::{IntroductionToken, NodeIntroduction};
pub use job::{Job, JobType, Task, TaskGroup};
pub use job_tags::{JobTags, VersionTag};
pub use keyring::{Keyring, SealedText, SigningKey};
pub use launch::{
    DispatchPayload, DispatchToken, Parameterized, Payload, PayloadRule, Periodic, PeriodicLaunch,
};
pub use leader::LeaderInfo;
pub use memory_max::MemoryMax;
pub use namespace::Namespace;
pub use network_status::{NetworkStatus, network_attribute};
pub use new_tasks::{changes_surroundings, needs_new_tasks, restarts_task};
pub use node::{Node, NodeEligibility, NodeStatus};
pub use node_pool::NodePool;
pub use plan::{Plan, PlanResult};
pub use process::{ProcessInfo, ProcessKey};
pub use refusal::Refusal;
pub use resources::{
    AllocatedCores, AllocatedDevice, AllocatedPort, AllocatedResources, ComparableResources,
    Dimension,
};
pub use restart_scope::RestartScope;
pub use revocation::NodeRevocation;
pub use scaling::{Scaling, ScalingEvent, ScalingEvents, TaskScaling};
pub use scheduler_config::{Algorithm, PoolConfiguration, Preemption, SchedulerConfiguration};
pub use service::{
    AllocServices, Service, ServiceHealth, ServiceOwner, ServiceRegistration, registration_id,
};
pub use stored_metric::StoredMetric;
pub use tally::{Ended, JobTally};
pub use task_state::{ExitResult, TaskEvent, TaskPhase, TaskState};
pub use task_states::TaskStates;
pub use time::{Timestamp, duration_ns};
pub use variable::{SealedVariable, VariableItems, VariableKey, VariableLock};
pub use vault::Vault;
pub use volume::{AccessMode, AttachmentMode, Capability, Volume, VolumeClaim, VolumeKey};
pub use workload_identity::WorkloadIdentity;

/// A stored object with the revisions of its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Indexed<T> {
    /// The revision that created the key.
    pub create_index: u64,
    /// The revision of the key's last change.
    pub modify_index: u64,
    pub value: T,
}
