//! What the job's deployments mean for one look at it: which one counts, how fast it may go on,
//! whether it is through.

use std::sync::Arc;

use model::job::UpdateStrategy;
use model::plan::DeploymentUpdate;
use model::{Deployment, DeploymentGroup, DeploymentId, DeploymentStatus, Indexed, Job, JobKey};
use state::{AllocView, Snapshot};

const CANCELLED_STOPPED: &str = "Cancelled because job is stopped";
const CANCELLED_NEWER: &str = "Cancelled due to newer version of job";
const SUCCESSFUL: &str = "Deployment completed successfully";
pub(crate) const RUNNING: &str = "Deployment is running";

/// The job's deployments, sorted out.
#[derive(Debug, Default)]
pub(crate) struct Triage {
    /// The deployment of the job's current version, unless it succeeded.
    ///
    /// A failed one stays current: nothing more of this version is rolled out.
    pub(crate) current: Option<Arc<Indexed<Deployment>>>,
    /// Those that somebody has overtaken are cancelled.
    pub(crate) updates: Vec<DeploymentUpdate>,
}

impl Triage {
    /// Sorts out the deployments of `key`; `job` is `None` when it is stopped or gone.
    pub(crate) fn new(snapshot: &Snapshot, key: &JobKey, job: Option<&Indexed<Job>>) -> Self {
        let mut triage = Self::default();
        let newest = job.and_then(|_| snapshot.latest_deployment(key));
        for deployment in snapshot.deployments_by_job(key) {
            let value = &deployment.value;
            let is_newest = newest.is_some_and(|newest| newest.value.id == value.id);
            let is_of_job = job.is_some_and(|job| {
                value.job_create_index == job.create_index && value.job_version == job.value.version
            });
            if is_newest && is_of_job {
                if value.status != DeploymentStatus::Successful {
                    triage.current = Some(Arc::clone(deployment));
                }
            } else if value.status.is_active() {
                let description = if job.is_none() {
                    CANCELLED_STOPPED
                } else {
                    CANCELLED_NEWER
                };
                triage
                    .updates
                    .push(update(value, DeploymentStatus::Cancelled, description));
            }
        }
        triage
    }

    pub(crate) fn active_id(&self) -> Option<DeploymentId> {
        let current = self.current.as_ref()?;
        current.value.status.is_active().then_some(current.value.id)
    }

    pub(crate) fn is_paused(&self) -> bool {
        self.current.as_ref().is_some_and(|current| {
            use DeploymentStatus::{Initializing, Paused, Pending};
            matches!(current.value.status, Paused | Pending | Initializing)
        })
    }

    pub(crate) fn is_failed(&self) -> bool {
        let current = self.current.as_ref();
        current.is_some_and(|current| current.value.status == DeploymentStatus::Failed)
    }

    /// Returns the current deployment's part about `group`.
    pub(crate) fn group(&self, group: &str) -> Option<&DeploymentGroup> {
        self.current.as_ref()?.value.groups.get(group)
    }

    /// Says that the current deployment is through, when it is active and every group is.
    pub(crate) fn complete(&mut self) {
        let Some(current) = &self.current else { return };
        if current.value.status.is_active() {
            let successful = DeploymentStatus::Successful;
            self.updates
                .push(update(&current.value, successful, SUCCESSFUL));
        }
    }

    /// Returns how many allocations may be updated destructively now.
    ///
    /// `untainted` are the group's allocations that have a slot on a node that is well.
    pub(crate) fn limit(
        &self,
        update: Option<&UpdateStrategy>,
        count: u32,
        untainted: &[&AllocView],
    ) -> u32 {
        let Some(update) = update.filter(|update| update.max_parallel > 0) else {
            return count;
        };
        let Some(current) = &self.current else {
            return update.max_parallel;
        };
        if self.is_paused() || self.is_failed() {
            return 0;
        }
        let mut unproven = 0_u32;
        for view in untainted {
            if view.alloc.deployment_id != Some(current.value.id) {
                continue;
            }
            match view.health() {
                Some(health) if health.healthy => {}
                Some(_) => return 0,
                None => unproven += 1,
            }
        }
        update.max_parallel.saturating_sub(unproven)
    }
}

fn update(
    deployment: &Deployment,
    status: DeploymentStatus,
    description: &str,
) -> DeploymentUpdate {
    DeploymentUpdate {
        deployment_id: deployment.id,
        status,
        description: description.to_owned(),
    }
}

/// Returns what a deployment starts with for a group that is updated by `update`.
pub(crate) fn new_group(update: &UpdateStrategy, desired_total: u32) -> DeploymentGroup {
    DeploymentGroup {
        auto_revert: update.auto_revert,
        auto_promote: update.auto_promote,
        progress_deadline: update.progress_deadline,
        promoted: false,
        desired_canaries: 0,
        desired_total,
        placed_canaries: Vec::new(),
    }
}

/// Returns how many live allocations of `deployment` their nodes have found healthy.
pub(crate) fn healthy_count<'a>(
    deployment: DeploymentId,
    allocs: impl IntoIterator<Item = &'a AllocView>,
) -> u32 {
    let healthy = allocs.into_iter().filter(|view| {
        view.alloc.deployment_id == Some(deployment)
            && !view.is_terminal()
            && view.health().is_some_and(|health| health.healthy)
    });
    u32::try_from(healthy.count()).unwrap_or(u32::MAX)
}
