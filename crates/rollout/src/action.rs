//! What is to be written, one transaction each.

use model::{AllocClient, AllocId, Deployment, DeploymentId, Evaluation, Indexed, Job, JobKey};
use state::Key;

/// One transaction. Whatever stands with an index is written only if it has not changed since.
#[derive(Clone, Debug, PartialEq)]
pub struct Action {
    pub deployment_id: DeploymentId,
    pub reason: Reason,
    /// The deployment as it is to be, with the indexes it was read at.
    pub deployment: Option<Indexed<Deployment>>,
    /// The job as it is to be, with the indexes it was read at; its version is new, and goes under
    /// a key of its own in the same transaction.
    pub job: Option<Indexed<Job>>,
    /// An evaluation to create. Its trace is the caller's to fill in.
    pub eval: Option<Evaluation>,
    /// A version to mark as stable, with the modify index that its key must have.
    pub stable: Option<Indexed<(JobKey, u64)>>,
    /// Client sides of allocations, as a user's word on their health makes them.
    pub clients: Vec<ClientWrite>,
    /// What was looked at and is not written, with the modify index that it must still have.
    pub unchanged: Vec<(Key, u64)>,
}

/// The client side of an allocation as it is to be.
#[derive(Clone, Debug, PartialEq)]
pub struct ClientWrite {
    pub alloc_id: AllocId,
    pub client: AllocClient,
    /// The modify index that its key must have; 0: it must not exist.
    pub modify_index: u64,
}

impl Action {
    pub(crate) fn new(deployment_id: DeploymentId, reason: Reason) -> Self {
        Self {
            deployment_id,
            reason,
            deployment: None,
            job: None,
            eval: None,
            stable: None,
            clients: Vec::new(),
            unchanged: Vec::new(),
        }
    }
}

/// Why something is written; for logs and metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Allocations have become healthy (or not) since the job was last looked at.
    Health,
    Failed(Cause),
    /// The job is gone, or is another job of the same name.
    JobGone,
    /// A deployment of the version succeeded.
    Stable,
    /// The canaries are healthy, and nobody has to be asked.
    AutoPromoted,
    /// A user says that the rest may follow the canaries.
    Promoted,
    Paused,
    Resumed,
    /// A user says how allocations are.
    HealthSet,
}

impl Reason {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Health => "health",
            Self::Failed(Cause::Unhealthy) => "failed_unhealthy",
            Self::Failed(Cause::ProgressDeadline) => "failed_progress_deadline",
            Self::Failed(Cause::User) => "failed_by_user",
            Self::JobGone => "job_gone",
            Self::Stable => "stable",
            Self::AutoPromoted => "auto_promoted",
            Self::Promoted => "promoted",
            Self::Paused => "paused",
            Self::Resumed => "resumed",
            Self::HealthSet => "health_set",
        }
    }
}

/// What a deployment failed of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// An allocation is unhealthy and nothing may replace it.
    Unhealthy,
    /// A group did not get further in time.
    ProgressDeadline,
    /// A user said so.
    User,
}
