//! Inputs of one run of the scheduler, fixed while its plan is made.

use std::collections::BTreeMap;

use model::{Algorithm, AllocId, Evaluation, Job, SchedulerConfiguration, Timestamp};
use placement::Requirements;
use state::Snapshot;

use crate::preempt::candidates::Preemptor;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Inputs<'a> {
    pub(crate) snapshot: &'a Snapshot,
    pub(crate) eval: &'a Evaluation,
    pub(crate) now: Timestamp,
    pub(crate) config: &'a SchedulerConfiguration,
    /// The algorithm of the job's node pool.
    pub(crate) algorithm: Algorithm,
    /// Preemption is enabled for jobs of this type.
    pub(crate) may_preempt: bool,
    /// Task group → requirements of the job's current version.
    pub(crate) requirements: &'a BTreeMap<String, Requirements>,
    /// Task group and version → requirements of older versions that are placed.
    pub(crate) older: &'a BTreeMap<(String, u64), Requirements>,
}

impl Inputs<'_> {
    /// Returns the preemptor for allocations of `job`; `None`: preemption is disabled.
    pub(crate) fn preemptor(&self, job: &Job) -> Option<Preemptor> {
        self.may_preempt.then(|| Preemptor {
            job: job.key(),
            priority: job.priority,
        })
    }

    /// Returns the priority of the job version that an allocation runs; 0 if it is unknown.
    pub(crate) fn priority_of(&self, id: AllocId) -> u8 {
        let view = self.snapshot.alloc(id);
        let version = view.and_then(|view| {
            let alloc = &view.alloc;
            self.snapshot
                .job_version(&alloc.job_key(), alloc.job_version)
        });
        version.map_or(0, |job| job.value.priority)
    }
}
