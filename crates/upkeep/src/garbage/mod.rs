//! Decides what nobody needs any more: ended evaluations and allocations, dead jobs, deployments
//! that are over, nodes that have long been down.
//!
//! Pure: [`sweep`] looks at one snapshot and returns [`Batch`]es, each one transaction. Every
//! deletion compares the revision that was looked at, so what somebody has changed since stays,
//! and the next sweep looks again. The loop around it is
//! `services/cluster-controller/src/garbage.rs`.
//!
//! What must hold afterwards, because others derive from it:
//! - the newest evaluation of a job that exists stays: status, queued counts and who looked last
//!   are read off it;
//! - the results of batch work stay as long as their job: for want of them it would run again;
//! - a failed allocation stays until it was replaced: its place would be filled if it were
//!   forgotten, whatever its policy says;
//! - what a deployment under way, a delayed evaluation or one out of reach goes by stays;
//! - what ended is counted in the job's tally by the transaction that forgets it.
//!
//! In reading order: [`thresholds`] says how old is old; `job` is what belongs to one job;
//! `rest` is what does not; `batch` packs deletions into transactions.

mod batch;
mod job;
mod rest;
pub mod thresholds;

use std::collections::BTreeSet;

use model::{JobKey, Timestamp};
use state::{JobStatus, Snapshot};

pub use batch::{Batch, Counts, Guard};
pub use thresholds::Thresholds;

/// Returns what is to be deleted, in the order in which it is to be deleted.
///
/// Shape: each batch is at most [`batch::OPS_MAX`] deletions; those of one job follow each other,
/// the job first: what is left of a job that is gone is nobody's.
/// Source of the rules: Nomad's public behaviour, stricter where the module's doc says so.
pub fn sweep(snapshot: &Snapshot, now: Timestamp, thresholds: &Thresholds) -> Vec<Batch> {
    let mut batches = Vec::new();
    for key in candidates(snapshot) {
        job::sweep(snapshot, &key, now, thresholds, &mut batches);
    }
    rest::sweep(snapshot, now, thresholds, &mut batches);
    batches
}

/// Returns the jobs that have anything that ended; those of purged jobs too.
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
        let is_over = snapshot.job(key).is_none() || is_dead(snapshot, key);
        if is_over && !keys.contains(key) {
            keys.insert(key.clone());
        }
    }
    keys
}

fn is_dead(snapshot: &Snapshot, key: &JobKey) -> bool {
    snapshot.job_status(key) == Some(JobStatus::Dead)
}

#[cfg(test)]
mod tests;
