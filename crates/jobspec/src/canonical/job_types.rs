//! Blocks that depend on the type of a job.

use model::job::JobType;

pub(super) const NO_RESCHEDULE: &str = "System or sysbatch jobs should not have a reschedule \
     policy without attempts: remove the block, or give attempts or unlimited = true to have failed \
     allocations placed again on their nodes";

pub(super) fn allows_update(job_type: JobType) -> bool {
    !job_type.runs_to_end()
}

/// Tells whether jobs of this type have a policy though their files say nothing of one.
pub(super) fn has_reschedule(job_type: JobType) -> bool {
    !job_type.is_per_node()
}

/// Returns the message for a block that jobs of this type may not have.
pub(super) fn refusal(job_type: JobType, block: &str) -> String {
    format!(
        "Job type {:?} does not allow {block} block: remove it, or make the job a service",
        job_type.as_str(),
    )
}
