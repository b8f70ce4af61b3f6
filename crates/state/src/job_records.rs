//! Queries of the records kept beside jobs: launches, dispatch tokens, scaling events; and of a
//! job's children.

use std::sync::Arc;

use model::{DispatchToken, Indexed, Job, JobKey, PeriodicLaunch, ScalingEvents};

use crate::snapshot::Snapshot;
use crate::summary::JobStatus;

/// Status counts of a parent's children.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChildrenSummary {
    pub pending: u32,
    pub running: u32,
    /// Garbage-collected children included, so the number never goes down.
    pub dead: u32,
}

impl Snapshot {
    /// Returns the jobs with active periodic launches, ordered by namespace and id.
    pub fn launched_jobs(&self) -> impl Iterator<Item = &JobKey> {
        self.tables().job_records.launched.iter()
    }

    /// Returns the launch record of a periodic job: the time up to which it was launched.
    pub fn periodic_launch(&self, key: &JobKey) -> Option<&Arc<Indexed<PeriodicLaunch>>> {
        self.tables().job_records.launches.get(key)
    }

    /// Returns every launch record ordered by job, those of deleted jobs included.
    pub fn periodic_launches(
        &self,
    ) -> impl Iterator<Item = (&JobKey, &Arc<Indexed<PeriodicLaunch>>)> {
        self.tables().job_records.launches.iter()
    }

    /// Returns the child that a dispatch of `parent` with this idempotency token created.
    pub fn dispatch_token(
        &self,
        parent: &JobKey,
        token: &str,
    ) -> Option<&Arc<Indexed<DispatchToken>>> {
        let key = (parent.clone(), token.to_owned());
        self.tables().job_records.tokens.get(&key)
    }

    /// Returns every token ordered by parent and token, those of deleted children included.
    pub fn dispatch_tokens(
        &self,
    ) -> impl Iterator<Item = (&JobKey, &str, &Arc<Indexed<DispatchToken>>)> {
        let tokens = self.tables().job_records.tokens.iter();
        tokens.map(|((parent, token), row)| (parent, token.as_str(), row))
    }

    /// Returns the scaling events of a group, over all incarnations of the job.
    pub fn scaling_events(
        &self,
        key: &JobKey,
        group: &str,
    ) -> Option<&Arc<Indexed<ScalingEvents>>> {
        let key = (key.clone(), group.to_owned());
        self.tables().job_records.scaling.get(&key)
    }

    /// Returns the scaling events of all groups of a job by name, former groups included.
    pub fn scaling_events_by_job(
        &self,
        key: &JobKey,
    ) -> impl Iterator<Item = (&str, &Arc<Indexed<ScalingEvents>>)> {
        let first = (key.clone(), String::new());
        let rows = self.tables().job_records.scaling.range(first..);
        let is_jobs = {
            let key = key.clone();
            move |job: &JobKey| *job == key
        };
        rows.take_while(move |((job, _), _)| is_jobs(job))
            .map(|((_, group), row)| (group.as_str(), row))
    }

    /// Returns every group's events ordered by job and group, those of deleted jobs included.
    pub fn all_scaling_events(
        &self,
    ) -> impl Iterator<Item = (&JobKey, &str, &Arc<Indexed<ScalingEvents>>)> {
        let rows = self.tables().job_records.scaling.iter();
        rows.map(|((job, group), row)| (job, group.as_str(), row))
    }

    /// Returns the children of a parent ordered by id, without their own children.
    pub fn children(&self, parent: &JobKey) -> impl Iterator<Item = &Arc<Indexed<Job>>> {
        let prefix = format!("{}/", parent.job_id);
        let first = JobKey::new(&*parent.namespace, prefix.as_str());
        let namespace = parent.namespace.clone();
        let parent_id = parent.job_id.clone();
        self.tables()
            .jobs
            .range(first..)
            .take_while(move |(key, _)| {
                key.namespace == namespace && key.job_id.starts_with(&prefix)
            })
            .map(|(_, job)| job)
            .filter(move |job| *job.value.parent_id == *parent_id)
    }

    /// Returns the first version number of a job that does not exist: 0, or one above the versions
    /// that objects of an earlier job of that id still name. So no such object refers to a version
    /// of the new job.
    pub fn unused_version(&self, key: &JobKey) -> u64 {
        let kept = self.job_versions(key).map(|job| job.value.version);
        let named = self.allocs_by_job(key).map(|view| view.alloc.job_version);
        kept.chain(named)
            .max()
            .map_or(0, |highest| highest.saturating_add(1))
    }

    /// Returns whether the job has a live allocation or an open evaluation.
    pub fn is_at_work(&self, key: &JobKey) -> bool {
        let mut evals = self.evals_by_job(key);
        evals.any(|eval| !eval.value.status.is_terminal())
            || self.allocs_by_job(key).any(|view| !view.is_terminal())
    }

    /// Returns the status counts of a parent's children; `None` when the job is no parent.
    pub fn children_summary(&self, key: &JobKey) -> Option<ChildrenSummary> {
        let job = self.job(key).filter(|job| job.value.is_parent())?;
        let mut summary = ChildrenSummary::default();
        for child in self.children(key) {
            match self.job_status(&child.value.key()) {
                Some(JobStatus::Pending) => summary.pending += 1,
                Some(JobStatus::Running) => summary.running += 1,
                Some(JobStatus::Dead) | None => summary.dead += 1,
            }
        }
        let tally = self.job_tally(key).map(|tally| &tally.value);
        if let Some(tally) = tally.filter(|tally| tally.job_create_index == job.create_index) {
            summary.dead = summary.dead.saturating_add(tally.children);
        }
        Some(summary)
    }
}
