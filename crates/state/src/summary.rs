//! Job status, job summaries and deployment counts, derived from the stored objects on request.

use std::collections::BTreeMap;

use model::job::JobType;
use model::{ClientStatus, Deployment, DeploymentCounts, DeploymentId, EvalStatus, JobKey};

use crate::snapshot::Snapshot;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobStatus {
    Pending,
    Running,
    Dead,
}

impl JobStatus {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Running => "running",
            Self::Dead => "dead",
        }
    }
}

/// Allocations of one task group by status.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GroupSummary {
    /// Wanted but not placed.
    pub queued: u32,
    pub starting: u32,
    pub running: u32,
    pub complete: u32,
    pub failed: u32,
    pub lost: u32,
    pub unknown: u32,
}

impl Snapshot {
    /// Returns a job's status; `None` when there is no such job.
    ///
    /// Source: Nomad's public behaviour. A system job or a parent is running until it is stopped.
    /// Any other job is running with an active deployment or a live allocation, pending with an open
    /// evaluation, dead when it was stopped or has had an evaluation, else pending.
    pub fn job_status(&self, key: &JobKey) -> Option<JobStatus> {
        let job = self.job(key)?;
        let stopped = job.value.stop;
        if job.value.job_type == JobType::System || job.value.is_parent() {
            return Some(if stopped {
                JobStatus::Dead
            } else {
                JobStatus::Running
            });
        }
        let deploying = self.deployments_by_job(key).any(|deployment| {
            deployment.value.status.is_active()
                && deployment.value.job_create_index == job.create_index
        });
        if deploying || self.allocs_by_job(key).any(|alloc| !alloc.is_terminal()) {
            return Some(JobStatus::Running);
        }
        let mut had_eval = false;
        for eval in self.evals_by_job(key) {
            if !eval.value.status.is_terminal() {
                return Some(JobStatus::Pending);
            }
            had_eval = true;
        }
        Some(if had_eval || stopped {
            JobStatus::Dead
        } else {
            JobStatus::Pending
        })
    }

    /// Returns the counts of a job's groups, over the job's current incarnation.
    ///
    /// Shape: every group of the job, and every group that has or had allocations. Collected
    /// allocations still count, so the numbers of ended ones never go down.
    pub fn job_summary(&self, key: &JobKey) -> BTreeMap<String, GroupSummary> {
        let mut groups = BTreeMap::<String, GroupSummary>::new();
        let Some(job) = self.job(key) else {
            return groups;
        };
        for group in &job.value.task_groups {
            groups.entry(group.name.clone()).or_default();
        }
        for view in self.allocs_by_job(key) {
            if view.alloc.job_create_index != job.create_index {
                continue;
            }
            let group = groups.entry(view.alloc.task_group.to_string()).or_default();
            match view.client_status() {
                // Stopped before its node started it: nothing will start.
                ClientStatus::Pending if view.alloc.is_server_terminal() => {}
                ClientStatus::Pending => group.starting += 1,
                ClientStatus::Running => group.running += 1,
                ClientStatus::Complete => group.complete += 1,
                ClientStatus::Failed => group.failed += 1,
                ClientStatus::Lost => group.lost += 1,
                ClientStatus::Unknown => group.unknown += 1,
            }
        }
        let tally = self.job_tally(key).map(|tally| &tally.value);
        if let Some(tally) = tally.filter(|tally| tally.job_create_index == job.create_index) {
            for (name, ended) in &tally.groups {
                let group = groups.entry(name.clone()).or_default();
                group.complete += ended.complete;
                group.failed += ended.failed;
                group.lost += ended.lost;
            }
        }
        if !job.value.stop {
            // A canceled evaluation is older than the one that replaced it.
            let planned = self
                .evals_by_job(key)
                .filter(|eval| eval.value.status != EvalStatus::Canceled);
            let newest = planned.max_by_key(|eval| eval.modify_index);
            for (name, queued) in newest
                .map(|eval| &eval.value.queued_allocs)
                .into_iter()
                .flatten()
            {
                if let Some(group) = groups.get_mut(name) {
                    group.queued = *queued;
                }
            }
        }
        groups
    }

    /// Returns the counts of each task group of a deployment.
    ///
    /// Shape: only groups with at least one allocation of the deployment.
    pub fn deployment_counts(&self, id: DeploymentId) -> BTreeMap<String, DeploymentCounts> {
        self.deployment_counts_at(id, u64::MAX)
    }

    /// As [`Self::deployment_counts`], without allocations created and health reported after
    /// `index`.
    pub fn deployment_counts_at(
        &self,
        id: DeploymentId,
        index: u64,
    ) -> BTreeMap<String, DeploymentCounts> {
        let mut groups = BTreeMap::<String, DeploymentCounts>::new();
        for view in self.allocs_by_deployment(id) {
            if view.create_index > index {
                continue;
            }
            let counts = groups.entry(view.alloc.task_group.to_string()).or_default();
            counts.placed += 1;
            match view.health().filter(|_| view.client_modify_index <= index) {
                Some(health) if health.healthy => counts.healthy += 1,
                Some(_) => counts.unhealthy += 1,
                None => {}
            }
        }
        groups
    }

    /// Stores the final counts of each group in a deployment that ends.
    pub fn note_final_counts(&self, deployment: &mut Deployment) {
        let mut counts = self.deployment_counts(deployment.id);
        for (name, group) in &mut deployment.groups {
            group.final_counts = Some(counts.remove(name).unwrap_or_default());
        }
    }
}
