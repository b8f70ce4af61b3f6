//! Deployments of a job: the current one, its update limit, and its completion.

use std::sync::Arc;

use model::job::UpdateStrategy;
use model::plan::DeploymentUpdate;
use model::{Deployment, DeploymentGroup, DeploymentId, DeploymentStatus, Indexed, Job, JobKey};
use state::{AllocView, Snapshot};

use crate::reconcile::changes::OlderVersion;

const CANCELLED_STOPPED: &str = "Cancelled because job is stopped";
const CANCELLED_NEWER: &str = "Cancelled due to newer version of job";
pub(crate) const SUCCESSFUL: &str = "Deployment completed successfully";

/// The job's deployments, sorted.
#[derive(Debug, Default)]
pub(crate) struct Rollouts {
    /// The deployment of the job's current version, unless it succeeded.
    ///
    /// A failed one stays current: no more allocations of this version are rolled out.
    pub(crate) current: Option<Arc<Indexed<Deployment>>>,
    /// The job's other deployments, the newest version first.
    older: Vec<Arc<Indexed<Deployment>>>,
    /// The job's version has been rolled out: later placements of it need no deployment.
    is_rolled_out: bool,
    /// The version before failed, and this one is a stable version again.
    restores_stable: bool,
    /// Cancellations of superseded deployments.
    pub(crate) updates: Vec<DeploymentUpdate>,
}

impl Rollouts {
    /// Sorts the deployments of `key`; `job` is `None` when it is stopped or gone.
    pub(crate) fn new(snapshot: &Snapshot, key: &JobKey, job: Option<&Indexed<Job>>) -> Self {
        let mut rollouts = Self::default();
        let newest = job.and_then(|_| snapshot.latest_deployment(key));
        for deployment in snapshot.deployments_by_job(key) {
            let value = &deployment.value;
            let is_newest = newest.is_some_and(|newest| newest.value.id == value.id);
            let is_of_job = job.is_some_and(|job| {
                value.job_create_index == job.create_index && value.job_version == job.value.version
            });
            if !(is_newest && is_of_job) {
                rollouts.older.push(Arc::clone(deployment));
            }
            if is_newest && is_of_job {
                if value.status == DeploymentStatus::Successful {
                    rollouts.is_rolled_out = true;
                } else {
                    rollouts.current = Some(Arc::clone(deployment));
                }
            } else if value.status.is_active() {
                let description = if job.is_none() {
                    CANCELLED_STOPPED
                } else {
                    CANCELLED_NEWER
                };
                rollouts
                    .updates
                    .push(update(value, DeploymentStatus::Cancelled, description));
            }
        }
        let is_of_job = |older: &Arc<Indexed<Deployment>>| {
            job.is_some_and(|job| older.value.job_create_index == job.create_index)
        };
        rollouts.older.retain(is_of_job);
        rollouts
            .older
            .sort_by_key(|older| std::cmp::Reverse((older.value.job_version, older.create_index)));
        rollouts.restores_stable = job.is_some_and(|job| {
            rollouts.has_failed_before() && is_stable_again(snapshot, key, &job.value)
        });
        rollouts
    }

    /// Tells whether the last of the older deployments that ran to its end has failed.
    fn has_failed_before(&self) -> bool {
        use DeploymentStatus::{Failed, Successful};
        let mut statuses = self.older.iter().map(|older| older.value.status);
        statuses.find(|status| matches!(status, Failed | Successful)) == Some(Failed)
    }

    /// Returns the canaries that `update` wants of the version: a number, or a percentage of a system
    /// job's nodes.
    ///
    /// None for a stable version after a failure: the version has proved itself, and an automatic
    /// revert has no user who would promote it. (In Nomad such a revert waits for a promotion.)
    pub(crate) fn canaries_of(&self, update: &UpdateStrategy) -> u32 {
        if self.restores_stable {
            0
        } else {
            update.canary
        }
    }

    /// Tells whether `view` is a canary of a version that will not be rolled out: its deployment
    /// ended or was superseded before its promotion.
    pub(crate) fn is_stale_canary(&self, view: &AllocView) -> bool {
        let Some(id) = view.alloc.deployment_id else {
            return false;
        };
        let ended = self
            .current
            .iter()
            .filter(|current| !current.value.status.is_active());
        let mut over = self.older.iter().chain(ended);
        over.find(|deployment| deployment.value.id == id)
            .is_some_and(|deployment| is_unpromoted_canary(&deployment.value, view))
    }

    /// Tells whether `view` is a canary of the current version.
    pub(crate) fn is_canary(&self, view: &AllocView) -> bool {
        self.current.as_ref().is_some_and(|current| {
            view.alloc.deployment_id == Some(current.value.id)
                && is_unpromoted_canary(&current.value, view)
        })
    }

    /// Tells whether `view` was a canary of the current version before its promotion.
    pub(crate) fn was_canary(&self, view: &AllocView) -> bool {
        let group = self.group(&view.alloc.task_group);
        group.is_some_and(|group| group.promoted && group.placed_canaries.contains(&view.alloc.id))
    }

    /// Tells whether the rest of `group` waits for its canaries.
    pub(crate) fn is_canarying(&self, group: &str) -> bool {
        self.group(group)
            .is_some_and(DeploymentGroup::awaits_promotion)
    }

    /// Returns the version for replacements in a group while a newer one is tried out: the newest
    /// one that was promoted, at least `version`.
    pub(crate) fn promoted_version(&self, group: &str, version: u64) -> Option<OlderVersion> {
        let mut promoted = self.older.iter().filter(|older| {
            let group = older.value.groups.get(group);
            group.is_some_and(|group| !group.awaits_promotion())
        });
        let found = promoted.next().map(|older| OlderVersion {
            version: older.value.job_version,
            deployment_id: Some(older.value.id),
        });
        found.filter(|older| older.version >= version)
    }

    /// Tells whether the first placement of a group starts a rollout; `allocs` are the group's
    /// allocations that were not told to stop.
    pub(crate) fn is_first<'a>(
        &self,
        job: &Indexed<Job>,
        mut allocs: impl Iterator<Item = &'a AllocView>,
    ) -> bool {
        !self.is_rolled_out
            && !allocs.any(|view| {
                view.alloc.job_version == job.value.version
                    && view.alloc.job_create_index == job.create_index
            })
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

    /// Returns the group's part of the current deployment.
    pub(crate) fn group(&self, group: &str) -> Option<&DeploymentGroup> {
        self.current.as_ref()?.value.groups.get(group)
    }

    /// Completes the current deployment if it is active; every group is complete.
    pub(crate) fn complete(&mut self) {
        let Some(current) = &self.current else { return };
        if current.value.status.is_active() {
            let successful = DeploymentStatus::Successful;
            self.updates
                .push(update(&current.value, successful, SUCCESSFUL));
        }
    }

    /// Returns the number of destructive updates allowed now.
    ///
    /// `slots` are the group's allocations with a slot, without failed ones that are replaced;
    /// `taken_over` are those updated in place while the version has no deployment yet: their
    /// former deployment is superseded, and they are unavailable until they are healthy.
    pub(crate) fn limit<'a>(
        &self,
        update: Option<&UpdateStrategy>,
        count: u32,
        slots: impl Iterator<Item = &'a AllocView>,
        taken_over: impl Iterator<Item = &'a AllocView>,
    ) -> u32 {
        let Some(update) = update.filter(|update| update.max_parallel > 0) else {
            return count;
        };
        let Some(current) = &self.current else {
            let unproven = taken_over.filter(|view| !is_proven(view)).count();
            let unproven = u32::try_from(unproven).unwrap_or(u32::MAX);
            return update.max_parallel.saturating_sub(unproven);
        };
        if self.is_paused() || self.is_failed() {
            return 0;
        }
        let mut unproven = 0_u32;
        for view in slots {
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

/// Tells whether `view` is available; outside of deployments health is not checked.
pub(crate) fn is_proven(view: &AllocView) -> bool {
    let is_healthy = || view.health().is_some_and(|health| health.healthy);
    !view.is_terminal() && (view.alloc.deployment_id.is_none() || is_healthy())
}

/// Tells whether `job` has the specification of one of its stable versions.
fn is_stable_again(snapshot: &Snapshot, key: &JobKey, job: &Job) -> bool {
    snapshot.job_versions(key).any(|version| {
        let number = version.value.version;
        number < job.version && snapshot.is_stable(key, number) && !version.value.spec_differs(job)
    })
}

fn is_unpromoted_canary(deployment: &Deployment, view: &AllocView) -> bool {
    let group = deployment.groups.get(&*view.alloc.task_group);
    group.is_some_and(|group| {
        group.awaits_promotion()
            && (view.alloc.canary || group.placed_canaries.contains(&view.alloc.id))
    })
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

/// Returns the initial state of a group in a deployment.
pub(crate) fn new_group(update: &UpdateStrategy, desired_total: u32) -> DeploymentGroup {
    DeploymentGroup {
        auto_revert: update.auto_revert,
        auto_promote: update.auto_promote,
        progress_deadline: update.progress_deadline,
        promoted: false,
        desired_canaries: 0,
        desired_total,
        placed_canaries: Vec::new(),
        final_counts: None,
    }
}

/// Returns the number of healthy live allocations of `deployment`.
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
