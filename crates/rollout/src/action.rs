//! Actions: one transaction of conditional writes each, with its reason.

use model::{Deployment, DeploymentId, Evaluation, Indexed, Job};
use state::{Entity, Key, Write};

/// One transaction. Every write compares the revision that the decision was made on.
#[derive(Clone, Debug, PartialEq)]
pub struct Action {
    pub deployment_id: DeploymentId,
    pub reason: Reason,
    /// At most one deployment, one job with its new version, one mark of a stable version, and one
    /// evaluation, whose trace the caller fills in ([`state::set_trace_parent`]). Also an
    /// [`Entity::AllocClient`] for each allocation whose health a user has set, and compares of objects
    /// that are not written.
    pub writes: Vec<Write>,
}

impl Action {
    pub(crate) fn new(deployment_id: DeploymentId, reason: Reason) -> Self {
        Self {
            deployment_id,
            reason,
            writes: Vec::new(),
        }
    }

    pub(crate) fn with(mut self, writes: impl IntoIterator<Item = Write>) -> Self {
        self.writes.extend(writes);
        self
    }

    /// Returns the deployment that is written.
    pub fn deployment(&self) -> Option<&Deployment> {
        self.entities().find_map(|entity| match entity {
            Entity::Deployment(deployment) => Some(&**deployment),
            _ => None,
        })
    }

    /// Returns the job that is written: the version that a failed deployment reverts to.
    pub fn job(&self) -> Option<&Job> {
        self.entities().find_map(|entity| match entity {
            Entity::Job(job) => Some(&**job),
            _ => None,
        })
    }

    /// Returns the evaluation that is created.
    pub fn eval(&self) -> Option<&Evaluation> {
        self.entities().find_map(|entity| match entity {
            Entity::Eval(eval) => Some(&**eval),
            _ => None,
        })
    }

    fn entities(&self) -> impl Iterator<Item = &Entity> {
        self.writes.iter().filter_map(Write::entity)
    }

    pub(crate) fn deployment_mut(&mut self) -> Option<&mut Deployment> {
        self.writes.iter_mut().find_map(|write| match write {
            Write::Update {
                entity: Entity::Deployment(deployment),
                ..
            } => Some(&mut **deployment),
            _ => None,
        })
    }
}

/// Replaces `read` by `deployment`.
pub(crate) fn update_deployment(read: &Indexed<Deployment>, deployment: Deployment) -> Write {
    Write::Update {
        key: Key::Deployment(deployment.id),
        modify_index: read.modify_index,
        entity: Entity::Deployment(Box::new(deployment)),
    }
}

/// Replaces `read` by `job`, whose version is new and is created under its own key.
pub(crate) fn update_job(read: &Indexed<Job>, job: Job) -> [Write; 2] {
    let key = job.key();
    let version = Write::Create {
        key: Key::JobVersion(key.clone(), job.version),
        entity: Entity::JobVersion(Box::new(job.clone())),
    };
    let current = Write::Update {
        key: Key::Job(key),
        modify_index: read.modify_index,
        entity: Entity::Job(Box::new(job)),
    };
    [current, version]
}

/// The reason of a write; for logs and metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The health of allocations has changed since the scheduler last looked at the job.
    Health,
    Failed(Cause),
    /// The job was purged, perhaps registered anew under the same name.
    JobGone,
    /// A deployment of the version succeeded.
    Stable,
    /// Every group that waits for promotion has `auto_promote` and healthy canaries.
    AutoPromoted,
    /// A user promoted the canaries.
    Promoted,
    Paused,
    Resumed,
    /// A user set the health of allocations.
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

/// The cause of a deployment's failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// An allocation is unhealthy and must not be replaced.
    Unhealthy,
    /// A group missed its progress deadline.
    ProgressDeadline,
    /// A user failed the deployment.
    User,
}
