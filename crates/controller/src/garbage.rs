//! Garbage collection: ended evaluations and allocations, dead jobs, ended deployments, nodes that
//! are down for long.
//!
//! Pure: [`sweep`] examines one snapshot and returns [`Batch`]es, each one transaction. Every
//! deletion compares the modify index of the snapshot, so an object that has changed since stays
//! until the next sweep. The loop around it is `services/cluster-controller/src/garbage.rs`.
//!
//! Invariants, because other decisions derive from the remaining objects:
//! - the newest evaluation of an existing job stays: the job's status and queued counts are read
//!   from it;
//! - the results of batch work stay as long as their job: without them it would run again;
//! - a failed allocation stays until it was replaced: without it the scheduler would fill its place,
//!   whatever the reschedule policy says;
//! - allocations that an active deployment, a delayed evaluation or a disconnected allocation
//!   depends on stay;
//! - a deleted allocation is counted in the job's tally by the same transaction.
//!
//! In reading order: [`thresholds`] are the retention times; `job` collects one job;
//! `outside_jobs` collects objects without a job; `batch` packs deletions into transactions;
//! [`tally`] adds up the counts of deleted objects.

mod batch;
mod job;
mod outside_jobs;
pub mod tally;
pub mod thresholds;

use std::collections::BTreeSet;

use model::{JobKey, Timestamp};
use state::Snapshot;

pub use batch::{Batch, Counts};
pub use job::{InUse, check_before_deletion};
pub use thresholds::Thresholds;

/// Returns the batches of a sweep, in the order in which they have to be performed.
///
/// Shape: each batch has at most [`batch::DELETIONS_MAX`] deletions; the batches of one job are
/// adjacent, with the job itself first: the rest is orphaned then, whatever becomes of it.
/// Source of the rules: Nomad's public behaviour, stricter where the module's doc says so.
pub fn sweep(snapshot: &Snapshot, now: Timestamp, thresholds: &Thresholds) -> Vec<Batch> {
    let mut batches = Vec::new();
    for key in candidates(snapshot) {
        job::sweep(snapshot, &key, now, thresholds, &mut batches);
    }
    outside_jobs::sweep(snapshot, now, thresholds, &mut batches);
    batches
}

/// Returns the jobs with ended objects, purged jobs included.
fn candidates(snapshot: &Snapshot) -> BTreeSet<JobKey> {
    let mut keys = BTreeSet::new();
    for eval in snapshot
        .evals()
        .filter(|eval| eval.value.status.is_terminal())
    {
        if !keys.contains(&eval.value.job) {
            keys.insert(eval.value.job.clone());
        }
    }
    for view in snapshot.allocs().filter(|view| view.is_terminal()) {
        keys.insert(view.alloc.job_key());
    }
    let versions = snapshot.all_job_versions().map(|(key, _)| key);
    let markers = snapshot.all_stable_versions().map(|(key, _, _)| key);
    let tallies = snapshot.job_tallies().map(|(key, _)| key);
    let tags = snapshot.all_job_tags().map(|(key, _)| key);
    let launches = snapshot.periodic_launches().map(|(key, _)| key);
    let scaled = snapshot.all_scaling_events().map(|(key, ..)| key);
    let beside = tallies.chain(tags).chain(launches).chain(scaled);
    for key in versions.chain(markers).chain(beside) {
        let is_over = snapshot.job(key).is_none() || job::is_dead(snapshot, key);
        if is_over && !keys.contains(key) {
            keys.insert(key.clone());
        }
    }
    keys
}

#[cfg(test)]
mod tests;
