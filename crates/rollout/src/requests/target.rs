//! The deployment that a request changes, and its job.

use model::{Deployment, Indexed, Job};
use state::Snapshot;

use super::refusal::DeploymentRefusal;

pub(super) fn require_active(
    deployment: &Deployment,
    doing: &'static str,
) -> Result<(), DeploymentRefusal> {
    if deployment.status.is_active() {
        Ok(())
    } else {
        Err(DeploymentRefusal::Terminal {
            doing,
            id: deployment.id,
            status: deployment.status.as_str(),
        })
    }
}

/// Returns the deployment's job, whatever its version.
pub(super) fn job<'a>(
    snapshot: &'a Snapshot,
    deployment: &Deployment,
) -> Result<&'a Indexed<Job>, DeploymentRefusal> {
    let job = snapshot.job(&deployment.job).map(AsRef::as_ref);
    job.filter(|job| job.create_index == deployment.job_create_index)
        .ok_or_else(|| overtaken(deployment))
}

/// Returns the deployment's job if that is what the deployment rolls out.
pub(super) fn current_job<'a>(
    snapshot: &'a Snapshot,
    deployment: &Deployment,
) -> Result<&'a Indexed<Job>, DeploymentRefusal> {
    let job = job(snapshot, deployment)?;
    if is_current(deployment, job) {
        Ok(job)
    } else {
        Err(overtaken(deployment))
    }
}

pub(super) fn is_current(deployment: &Deployment, job: &Indexed<Job>) -> bool {
    !job.value.stop && job.value.version == deployment.job_version
}

fn overtaken(deployment: &Deployment) -> DeploymentRefusal {
    let job_id = deployment.job.job_id.to_string();
    DeploymentRefusal::Overtaken { job_id }
}
