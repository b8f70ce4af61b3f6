//! Index of a result, with which a caller waits for the next change. Never 0.
//!
//! The index of an object is the newest of everything that its answer shows. The index of a list or
//! of a missing object is the newest of its tables.

use model::{DeploymentId, JobKey};
use state::{Snapshot, Table};

/// The tables of a job's answer: status and summary are derived from the others.
pub const JOB_TABLES: [Table; 4] = [Table::Jobs, Table::Evals, Table::Allocs, Table::Deployments];

/// Returns the newest change of any of `tables`, at least 1.
pub fn of_tables(snapshot: &Snapshot, tables: &[Table]) -> u64 {
    tables
        .iter()
        .map(|table| snapshot.table_index(*table))
        .max()
        .unwrap_or(0)
        .max(1)
}

/// Returns the newest change of a job, except for its versions' stability, and of everything that
/// its status and summary are derived from.
///
/// Collected objects are not among them; they had ended, so they do not change the status.
pub fn of_job(snapshot: &Snapshot, key: &JobKey) -> u64 {
    let Some(job) = snapshot.job(key) else {
        return of_tables(snapshot, &JOB_TABLES);
    };
    if job.value.is_parent() {
        // The answer shows its children and its next launch, too.
        return of_tables(snapshot, &JOB_TABLES);
    }
    let evals = snapshot.evals_by_job(key).map(|eval| eval.modify_index);
    let allocs = snapshot.allocs_by_job(key).map(|view| view.modify_index());
    let deployments = snapshot
        .deployments_by_job(key)
        .map(|deployment| deployment.modify_index);
    let newest = evals.chain(allocs).chain(deployments).max().unwrap_or(0);
    newest.max(job.modify_index)
}

/// Returns the newest change of a deployment and of the allocations that it counts.
pub fn of_deployment(snapshot: &Snapshot, id: DeploymentId, own: u64) -> u64 {
    snapshot
        .allocs_by_deployment(id)
        .map(|view| view.modify_index())
        .max()
        .unwrap_or(0)
        .max(own)
}
