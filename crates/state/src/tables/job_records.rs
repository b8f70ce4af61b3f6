//! Records kept beside jobs: launches, dispatch tokens and scaling events; and the launched jobs.

use std::sync::Arc;

use imbl::{OrdMap, OrdSet};
use model::{DispatchToken, Indexed, Job, JobKey, PeriodicLaunch, ScalingEvents};

#[derive(Clone, Debug, Default)]
pub(crate) struct JobRecords {
    pub(crate) launches: OrdMap<JobKey, Arc<Indexed<PeriodicLaunch>>>,
    /// By parent and token.
    pub(crate) tokens: OrdMap<(JobKey, String), Arc<Indexed<DispatchToken>>>,
    /// By job and group.
    pub(crate) scaling: OrdMap<(JobKey, String), Arc<Indexed<ScalingEvents>>>,
    /// The jobs with active periodic launches.
    pub(crate) launched: OrdSet<JobKey>,
}

impl JobRecords {
    /// Takes in the job's new value; `None`: it was deleted.
    pub(crate) fn note(&mut self, key: &JobKey, job: Option<&Job>) {
        if job.is_some_and(Job::is_launched) {
            self.launched.insert(key.clone());
        } else {
            self.launched.remove(key);
        }
    }
}
