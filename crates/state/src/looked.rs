//! How far schedulers have looked, derived from a job's evaluations.

use model::{EvalStatus, JobKey, Timestamp};

use crate::snapshot::Snapshot;

impl Snapshot {
    /// Returns the revision up to which a scheduler has looked at a job, or surely will without
    /// being asked again; 0: none has.
    ///
    /// What has run counts by its snapshot: a blocked evaluation is made after the snapshot that
    /// it knows. What has not run yet will look at its own creation or later, if its time has
    /// come; a delayed one may come too late for anything. A failed one has its follow-up.
    pub fn looked_at(&self, job: &JobKey, now: Timestamp) -> u64 {
        let mut newest = 0;
        for eval in self.evals_by_job(job) {
            let value = &eval.value;
            let seen = match value.status {
                EvalStatus::Canceled => 0,
                EvalStatus::Blocked => value.snapshot_index,
                EvalStatus::Complete if value.snapshot_index > 0 => value.snapshot_index,
                EvalStatus::Pending if value.wait_until > now => 0,
                EvalStatus::Pending | EvalStatus::Complete => eval.create_index,
                EvalStatus::Failed => eval.create_index.max(value.snapshot_index),
            };
            newest = newest.max(seen);
        }
        newest
    }
}
