//! The index of a result: what a caller waits with for the next change. Never 0.
//!
//! An object's own index is the newest of everything that its answer shows; a list's, or that of
//! an object that is missing, is its tables' newest.

use model::{DeploymentId, JobKey};
use state::{Snapshot, Table};

/// What a job's answer shows beside the job: its status and summary.
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

/// Returns the newest change of a job, its versions' stability aside, and of all that its status
/// and summary are counted from.
///
/// What was collected is not among them; it had ended, so it changes no status.
pub fn of_job(snapshot: &Snapshot, key: &JobKey) -> u64 {
    let Some(job) = snapshot.job(key) else {
        return of_tables(snapshot, &JOB_TABLES);
    };
    if job.value.is_parent() {
        // Its children are shown as well, and when it is launched next.
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

/// Returns the newest change of a deployment and of the allocations that its counts are of.
pub fn of_deployment(snapshot: &Snapshot, id: DeploymentId, own: u64) -> u64 {
    snapshot
        .allocs_by_deployment(id)
        .map(|view| view.modify_index())
        .max()
        .unwrap_or(0)
        .max(own)
}
