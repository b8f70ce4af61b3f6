//! What stands beside jobs: when they were launched, which dispatch made which child, how they were
//! scaled; and the children of a job.

use std::sync::Arc;

use imbl::{OrdMap, OrdSet};
use model::{DispatchToken, Indexed, Job, JobKey, PeriodicLaunch, ScalingEvents};

use crate::snapshot::Snapshot;
use crate::summary::JobStatus;

#[derive(Clone, Debug, Default)]
pub(crate) struct Launches {
    pub(crate) launches: OrdMap<JobKey, Arc<Indexed<PeriodicLaunch>>>,
    /// By parent and token.
    pub(crate) tokens: OrdMap<(JobKey, String), Arc<Indexed<DispatchToken>>>,
    /// By job and group.
    pub(crate) scaling: OrdMap<(JobKey, String), Arc<Indexed<ScalingEvents>>>,
    /// The jobs that the clock launches.
    pub(crate) launched: OrdSet<JobKey>,
}

impl Launches {
    /// Notes what a job is now; `None`: it is gone.
    pub(crate) fn note(&mut self, key: &JobKey, job: Option<&Job>) {
        if job.is_some_and(Job::is_launched) {
            self.launched.insert(key.clone());
        } else {
            self.launched.remove(key);
        }
    }
}

/// How a parent's children are doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChildrenSummary {
    pub pending: u32,
    pub running: u32,
    /// Those that were collected as well: the number never goes down.
    pub dead: u32,
}

impl Snapshot {
    /// Returns the jobs that the clock launches, ordered by namespace and id.
    pub fn launched_jobs(&self) -> impl Iterator<Item = &JobKey> {
        self.tables().launches.launched.iter()
    }

    /// Returns up to when a periodic job was launched.
    pub fn periodic_launch(&self, key: &JobKey) -> Option<&Arc<Indexed<PeriodicLaunch>>> {
        self.tables().launches.launches.get(key)
    }

    /// Returns every launch record, those of jobs that are gone too, ordered by job.
    pub fn periodic_launches(
        &self,
    ) -> impl Iterator<Item = (&JobKey, &Arc<Indexed<PeriodicLaunch>>)> {
        self.tables().launches.launches.iter()
    }

    /// Returns which child a dispatch of `parent` with this token made.
    pub fn dispatch_token(
        &self,
        parent: &JobKey,
        token: &str,
    ) -> Option<&Arc<Indexed<DispatchToken>>> {
        let key = (parent.clone(), token.to_owned());
        self.tables().launches.tokens.get(&key)
    }

    /// Returns every token, those of children that are gone too, ordered by parent and token.
    pub fn dispatch_tokens(
        &self,
    ) -> impl Iterator<Item = (&JobKey, &str, &Arc<Indexed<DispatchToken>>)> {
        let tokens = self.tables().launches.tokens.iter();
        tokens.map(|((parent, token), row)| (parent, token.as_str(), row))
    }

    /// Returns what was asked of a group's count, by whatever incarnation of the job.
    pub fn scaling_events(
        &self,
        key: &JobKey,
        group: &str,
    ) -> Option<&Arc<Indexed<ScalingEvents>>> {
        let key = (key.clone(), group.to_owned());
        self.tables().launches.scaling.get(&key)
    }

    /// Returns the same for all groups of a job that have any, former groups too, by name.
    pub fn scaling_events_by_job(
        &self,
        key: &JobKey,
    ) -> impl Iterator<Item = (&str, &Arc<Indexed<ScalingEvents>>)> {
        let first = (key.clone(), String::new());
        let rows = self.tables().launches.scaling.range(first..);
        let is_jobs = {
            let key = key.clone();
            move |job: &JobKey| *job == key
        };
        rows.take_while(move |((job, _), _)| is_jobs(job))
            .map(|((_, group), row)| (group.as_str(), row))
    }

    /// Returns every group's events, those of jobs that are gone too, ordered by job and group.
    pub fn all_scaling_events(
        &self,
    ) -> impl Iterator<Item = (&JobKey, &str, &Arc<Indexed<ScalingEvents>>)> {
        let rows = self.tables().launches.scaling.iter();
        rows.map(|((job, group), row)| (job, group.as_str(), row))
    }

    /// Returns the jobs that were made for a parent, ordered by id; their own children are not among
    /// them.
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

    /// Returns the number for the first version of a job that does not exist: 0, unless something of
    /// an earlier job of that id still names versions; a number is not used twice while anything
    /// does.
    pub fn unused_version(&self, key: &JobKey) -> u64 {
        let kept = self.job_versions(key).map(|job| job.value.version);
        let named = self.allocs_by_job(key).map(|view| view.alloc.job_version);
        kept.chain(named)
            .max()
            .map_or(0, |highest| highest.saturating_add(1))
    }

    /// Tells whether something of a job runs, or may yet run.
    pub fn is_at_work(&self, key: &JobKey) -> bool {
        let mut evals = self.evals_by_job(key);
        evals.any(|eval| !eval.value.status.is_terminal())
            || self.allocs_by_job(key).any(|view| !view.is_terminal())
    }

    /// Returns how a parent's children are doing; `None`: it is none.
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
