//! The newest index of a job that evaluations cover.

use model::{EvalStatus, JobKey, Timestamp};

use crate::snapshot::Snapshot;

impl Snapshot {
    /// Returns the highest index covered by a completed or pending evaluation of a job; 0: none.
    ///
    /// A completed or blocked evaluation covers the snapshot that it was planned on. A pending one
    /// whose time has come covers its own creation, because its snapshot will be at least that new;
    /// a delayed one covers nothing yet. A failed one counts, because its follow-up takes over.
    pub fn covered_index(&self, job: &JobKey, now: Timestamp) -> u64 {
        let mut newest = 0;
        for eval in self.evals_by_job(job) {
            let value = &eval.value;
            let covered = match value.status {
                EvalStatus::Canceled => 0,
                EvalStatus::Blocked => value.snapshot_index,
                EvalStatus::Complete if value.snapshot_index > 0 => value.snapshot_index,
                EvalStatus::Pending if value.wait_until > now => 0,
                EvalStatus::Pending | EvalStatus::Complete => eval.create_index,
                EvalStatus::Failed => eval.create_index.max(value.snapshot_index),
            };
            newest = newest.max(covered);
        }
        newest
    }
}
