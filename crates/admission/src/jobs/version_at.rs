//! The version of a job at an earlier revision, or of an earlier request, for answers to retries.

use std::sync::Arc;

use model::{EvalId, Indexed, Job, JobKey};
use state::Snapshot;

/// Returns the version that was the job's newest at revision `index`; `None`: it is not kept any more.
///
/// Older versions may be kept longer than it: a purge leaves the versions that allocations run, and
/// pruning those that allocations name. So the newest kept version that is not after `index` counts only
/// if it was written at `index`, or if the same job has that version still or its successor.
pub(super) fn version_at<'a>(
    snapshot: &'a Snapshot,
    key: &JobKey,
    index: u64,
) -> Option<&'a Arc<Indexed<Job>>> {
    let versions = snapshot.job_versions(key);
    let versions = versions.filter(|version| version.create_index <= index);
    let newest = versions.max_by_key(|version| version.create_index)?;
    let number = newest.value.version;
    let is_followed = snapshot
        .job_version(key, number.saturating_add(1))
        .is_some();
    // A job that was registered after a purge has the key, and is another one.
    let job = snapshot.job(key);
    let job = job.filter(|job| job.create_index <= newest.create_index);
    let is_its_newest = newest.create_index == index
        || job.is_some_and(|job| is_followed || job.value.version == number);
    is_its_newest.then_some(newest)
}

/// Returns the version of a job without evaluations that the request with this evaluation id wrote.
pub(super) fn version_written_by<'a>(
    snapshot: &'a Snapshot,
    key: &JobKey,
    eval_id: EvalId,
) -> Option<&'a Arc<Indexed<Job>>> {
    snapshot.job(key).filter(|job| job.value.is_parent())?;
    let mut versions = snapshot.job_versions(key);
    versions.find(|version| version.value.written_by == Some(eval_id))
}
