//! Kafila's nouns and their arithmetic: what a user asks for, what was decided, what runs.
//!
//! In reading order: [`ids`] names things; [`spec`] is a job as a user may write it, everything
//! optional; [`job`] is the same job with every default filled in, the form that is stored;
//! [`needs_new_tasks`] is what becomes of what runs when it changes; [`launch`] is about jobs that
//! have children, [`scaling`] about counts that change; [`node`] is a machine, [`drain`] how its
//! allocations leave it, [`node_pool`] a named part of them, [`namespace`] a named part of the jobs;
//! [`evaluation`] says "look at this job again"; [`scheduler_config`] is what operators choose about
//! that; [`plan`] is what a scheduler
//! proposes; [`allocation`] is one task group placed on one node; [`deployment`] is the rollout of
//! one job version; [`volume`] is a directory of a node that users registered.
//!
//! No type here carries its own index: an object's create and modify index are the revisions of
//! its key, and [`Indexed`] adds them when it is read. Nothing here does I/O or knows the time.

pub mod allocation;
pub mod constraint;
pub mod deployment;
pub mod drain;
pub mod duration;
pub mod evaluation;
pub mod field_error;
pub mod ids;
pub mod job;
mod job_tags;
pub mod launch;
pub mod leader;
pub mod memory_max;
pub mod namespace;
mod new_tasks;
pub mod node;
pub mod node_pool;
pub mod plan;
pub mod resources;
pub mod scaling;
pub mod scheduler_config;
pub mod spec;
pub mod tally;
pub mod task_state;
pub mod time;
pub mod volume;

pub use allocation::{
    AllocClient, AllocMetric, Allocation, ClientStatus, DeploymentHealth, DesiredStatus,
    DesiredTransition, ExhaustedResources, NodeScore, ScoreParts,
};
pub use constraint::{Affinity, Constraint, Operator, Spread, SpreadTarget};
pub use deployment::{Deployment, DeploymentCounts, DeploymentGroup, DeploymentStatus};
pub use drain::{DrainStatus, DrainStrategy, LastDrain, NodeEvent};
pub use evaluation::{EvalStatus, Evaluation, TriggeredBy};
pub use field_error::{FieldError, FieldErrors};
pub use ids::{AllocId, DeploymentId, EvalId, JobKey, NodeId, VolumeClaimId, VolumeId};
pub use job::{Job, JobType, Task, TaskGroup};
pub use job_tags::{JobTags, VersionTag};
pub use launch::{
    DispatchPayload, DispatchToken, Parameterized, Payload, PayloadRule, Periodic, PeriodicLaunch,
};
pub use leader::LeaderInfo;
pub use memory_max::MemoryMax;
pub use namespace::Namespace;
pub use new_tasks::{changes_surroundings, needs_new_tasks, restarts_task};
pub use node::{Node, NodeEligibility, NodeStatus};
pub use node_pool::NodePool;
pub use plan::{Plan, PlanResult};
pub use resources::{
    AllocatedCores, AllocatedDevice, AllocatedPort, AllocatedResources, ComparableResources,
    Dimension,
};
pub use scaling::{Scaling, ScalingEvent, ScalingEvents};
pub use scheduler_config::{Algorithm, PoolConfiguration, Preemption, SchedulerConfiguration};
pub use tally::{Ended, JobTally};
pub use task_state::{ExitResult, TaskEvent, TaskPhase, TaskState};
pub use time::{Timestamp, duration_ns};
pub use volume::{AccessMode, AttachmentMode, Capability, Volume, VolumeClaim, VolumeKey};

/// A stored object with the revisions of its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Indexed<T> {
    /// The revision that created the key.
    pub create_index: u64,
    /// The revision of the key's last change.
    pub modify_index: u64,
    pub value: T,
}
