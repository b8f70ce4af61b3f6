//! What the replica is fed with: typed keys, typed objects, and their revisions.

use model::{
    AllocClient, AllocId, Allocation, Deployment, DeploymentId, EvalId, Evaluation, Job, JobKey,
    JobTags, JobTally, LeaderInfo, Namespace, Node, NodeId, NodePool, SchedulerConfiguration,
    Volume, VolumeClaim, VolumeClaimId, VolumeKey,
};
use model::{DispatchToken, PeriodicLaunch, ScalingEvents};

use crate::staged::{PlanCommit, PlanPiece};

/// The name of one stored object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Key {
    Job(JobKey),
    JobVersion(JobKey, u64),
    /// Marks a version that a deployment found stable.
    JobStable(JobKey, u64),
    /// What became of the job's allocations that were collected.
    JobTally(JobKey),
    /// What versions of the job are called.
    JobTags(JobKey),
    Eval(EvalId),
    Alloc(AllocId),
    AllocClient(AllocId),
    Node(NodeId),
    Deployment(DeploymentId),
    /// Who leads the named service.
    Election(String),
    /// There is one.
    SchedulerConfig,
    NodePool(String),
    Namespace(String),
    Volume(VolumeKey),
    VolumeClaim(VolumeClaimId),
    /// Up to when the job was launched.
    PeriodicLaunch(JobKey),
    /// Which child a dispatch of this job with this token made.
    DispatchToken(JobKey, String),
    /// What was asked of the count of one of the job's groups.
    ScalingEvents(JobKey, String),
    /// A part, by position, of what the plan of this evaluation is to write as a whole.
    PlanPiece(EvalId, u32),
    /// That plan holds.
    PlanCommit(EvalId),
}

impl Key {
    pub fn table(&self) -> Table {
        match self {
            // The rest stands beside a job, and is written with it or with its children.
            Self::Job(_)
            | Self::PeriodicLaunch(_)
            | Self::DispatchToken(..)
            | Self::ScalingEvents(..) => Table::Jobs,
            Self::JobVersion(..) | Self::JobStable(..) | Self::JobTags(_) => Table::JobVersions,
            Self::Eval(_) => Table::Evals,
            // It stands for allocations, and changes with them.
            Self::Alloc(_) | Self::AllocClient(_) | Self::JobTally(_) => Table::Allocs,
            Self::Node(_) => Table::Nodes,
            Self::Deployment(_) => Table::Deployments,
            Self::Election(_) => Table::Elections,
            Self::SchedulerConfig => Table::SchedulerConfig,
            Self::NodePool(_) => Table::NodePools,
            Self::Namespace(_) => Table::Namespaces,
            Self::Volume(_) | Self::VolumeClaim(_) => Table::Volumes,
            Self::PlanPiece(..) | Self::PlanCommit(_) => Table::Plans,
        }
    }
}

/// A kind of object; each has an index of its own, the revision of its last change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Table {
    Jobs,
    JobVersions,
    Evals,
    Allocs,
    Nodes,
    Deployments,
    Elections,
    SchedulerConfig,
    NodePools,
    /// And claims of them.
    Volumes,
    Namespaces,
    /// Those that are being written as a whole.
    Plans,
}

impl Table {
    pub(crate) const COUNT: usize = 12;
}

/// A stored object, without its name.
#[derive(Clone, Debug, PartialEq)]
pub enum Entity {
    Job(Box<Job>),
    JobVersion(Box<Job>),
    JobStable,
    JobTally(Box<JobTally>),
    JobTags(Box<JobTags>),
    Eval(Box<Evaluation>),
    Alloc(Box<Allocation>),
    AllocClient(Box<AllocClient>),
    Node(Box<Node>),
    Deployment(Box<Deployment>),
    Election(LeaderInfo),
    SchedulerConfig(Box<SchedulerConfiguration>),
    NodePool(Box<NodePool>),
    Namespace(Box<Namespace>),
    Volume(Box<Volume>),
    VolumeClaim(Box<VolumeClaim>),
    PeriodicLaunch(PeriodicLaunch),
    DispatchToken(DispatchToken),
    ScalingEvents(Box<ScalingEvents>),
    PlanPiece(Box<PlanPiece>),
    PlanCommit(PlanCommit),
}

/// One key's change, as a watch tells it.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// `entity` is of the kind that `key` names; its own id field, if any, is already filled in.
    Put {
        key: Key,
        entity: Entity,
        create_index: u64,
        modify_index: u64,
    },
    Delete {
        key: Key,
    },
}
