//! What is to be written, one transaction each.

use model::{Deployment, DeploymentId, Evaluation, Indexed, Job, JobKey};

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
}

impl Reason {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Health => "health",
            Self::Failed(Cause::Unhealthy) => "failed_unhealthy",
            Self::Failed(Cause::ProgressDeadline) => "failed_progress_deadline",
            Self::JobGone => "job_gone",
            Self::Stable => "stable",
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
}
