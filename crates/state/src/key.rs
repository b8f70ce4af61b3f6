//! Names of stored objects, and the tables that the objects belong to.

use model::{
    AllocId, CsiAttachmentKey, CsiVolumeKey, DeploymentId, EvalId, IntroductionTokenId, JobKey,
    NodeId, ProcessKey, VariableKey, VolumeClaimId, VolumeKey,
};

/// Name of one stored object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Key {
    Job(JobKey),
    JobVersion(JobKey, u64),
    /// Marks a version as stable: its deployment succeeded, or a user marked it.
    JobStable(JobKey, u64),
    /// Final counts of the job's garbage-collected allocations.
    JobTally(JobKey),
    /// Tags of the job's versions.
    JobTags(JobKey),
    Eval(EvalId),
    Alloc(AllocId),
    AllocClient(AllocId),
    Node(NodeId),
    Deployment(DeploymentId),
    /// Leader of the named service.
    Election(String),
    /// The only one of its kind.
    SchedulerConfig,
    NodePool(String),
    Namespace(String),
    Volume(VolumeKey),
    VolumeClaim(VolumeClaimId),
    /// A volume of a storage system.
    CsiVolume(CsiVolumeKey),
    /// Such a volume on one node.
    CsiAttachment(CsiAttachmentKey),
    /// Time up to which the periodic job was launched.
    PeriodicLaunch(JobKey),
    /// The child that a dispatch of this job with this idempotency token created.
    DispatchToken(JobKey, String),
    /// Scaling events of one of the job's groups.
    ScalingEvents(JobKey, String),
    /// A piece, by position, of the evaluation's plan that is committed in several transactions.
    PlanPiece(EvalId, u32),
    /// Commit record of such a plan.
    PlanCommit(EvalId),
    IntroductionToken(IntroductionTokenId),
    /// The introduction of a node with a token.
    NodeIntroduction(NodeId),
    /// Service registrations of an allocation.
    Services(AllocId),
    /// The revocation of a node.
    NodeRevocation(NodeId),
    /// A running process of a service.
    Process(ProcessKey),
    /// The signing keys of identity tokens. The only one of its kind.
    Keyring,
    /// A variable. It is outside of the prefix that replicas watch.
    Variable(VariableKey),
    /// The holder of a variable's lock, beside the variables.
    LockHolder(VariableKey),
    /// The lock of a variable until the end of its delay, beside the variables.
    LockDelay(VariableKey),
}

impl Key {
    pub fn table(&self) -> Table {
        match self {
            // The last three are written with the job or with its children.
            Self::Job(_)
            | Self::PeriodicLaunch(_)
            | Self::DispatchToken(..)
            | Self::ScalingEvents(..) => Table::Jobs,
            Self::JobVersion(..) | Self::JobStable(..) | Self::JobTags(_) => Table::JobVersions,
            Self::Eval(_) => Table::Evals,
            // A tally counts deleted allocations, and changes with their deletion.
            Self::Alloc(_) | Self::AllocClient(_) | Self::JobTally(_) => Table::Allocs,
            Self::Node(_) => Table::Nodes,
            Self::Deployment(_) => Table::Deployments,
            Self::Election(_) => Table::Elections,
            Self::SchedulerConfig => Table::SchedulerConfig,
            Self::NodePool(_) => Table::NodePools,
            Self::Namespace(_) => Table::Namespaces,
            Self::Volume(_)
            | Self::VolumeClaim(_)
            | Self::CsiVolume(_)
            | Self::CsiAttachment(_) => Table::Volumes,
            Self::PlanPiece(..) | Self::PlanCommit(_) => Table::Plans,
            Self::IntroductionToken(_) | Self::NodeIntroduction(_) => Table::Introductions,
            Self::Services(_) => Table::Services,
            Self::NodeRevocation(_) => Table::NodeRevocations,
            Self::Process(_) => Table::Processes,
            Self::Keyring => Table::Keyring,
            Self::Variable(_) | Self::LockHolder(_) | Self::LockDelay(_) => Table::Variables,
        }
    }
}

/// A kind of object, with an index of its own: the revision of its last change.
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
    /// Volumes, volume claims and attachments of volumes.
    Volumes,
    Namespaces,
    /// Plans that are being committed in several transactions.
    Plans,
    /// Introduction tokens, and the nodes that have used one.
    Introductions,
    /// Service registrations. Only gateways hold them.
    Services,
    /// Revoked nodes. Only gateways hold them.
    NodeRevocations,
    /// Running processes of services. Only gateways hold them.
    Processes,
    /// Signing keys of identity tokens, sealed. Only gateways hold them.
    Keyring,
    /// Variables, sealed. No replica holds them: gateways read them from etcd.
    Variables,
}

impl Table {
    pub(crate) const COUNT: usize = 18;
}
