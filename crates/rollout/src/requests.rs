//! Requests of users for a deployment, and automatic promotion.
//!
//! Each returns one transaction, or why the request is refused. The transaction compares what the
//! decision was based on: the deployment, the job where it matters, and the promoted canaries. Pauses are
//! here; [`promotion`], [`failing`] and [`health`] have the others, [`target`] what they share.

mod failing;
mod health;
mod promotion;
mod refusal;
mod target;

use model::{Deployment, DeploymentStatus, EvalId, Indexed, Timestamp};
use state::Snapshot;

use self::target::{job, require_active};
use crate::action::{Action, Reason, update_deployment};
use crate::outcome::{create_eval, moved};

pub use self::failing::fail;
pub use self::health::set_alloc_health;
pub(crate) use self::promotion::auto_promote;
pub use self::promotion::{PromotedGroups, promote};
pub use self::refusal::{DeploymentRefusal, GroupProblem, MAX_HEALTH_CHANGES};

/// Decides on pausing a deployment: its rollout and its deadlines stop. `None`: it is paused already.
///
/// # Errors
/// It has ended.
pub fn pause(
    deployment: &Indexed<Deployment>,
    now: Timestamp,
) -> Result<Option<Action>, DeploymentRefusal> {
    require_active(&deployment.value, "pause")?;
    if deployment.value.status == DeploymentStatus::Paused {
        return Ok(None);
    }
    let description = "Deployment is paused".to_owned();
    let paused = moved(
        &deployment.value,
        DeploymentStatus::Paused,
        description,
        now,
    );
    Ok(Some(
        Action::new(deployment.value.id, Reason::Paused)
            .with([update_deployment(deployment, paused)]),
    ))
}

/// Decides on resuming a paused deployment, whose progress deadlines restart. `None`: it is not
/// paused.
///
/// # Errors
/// It has ended.
pub fn resume(
    snapshot: &Snapshot,
    deployment: &Indexed<Deployment>,
    eval_id: EvalId,
    now: Timestamp,
) -> Result<Option<Action>, DeploymentRefusal> {
    require_active(&deployment.value, "resume")?;
    if deployment.value.status != DeploymentStatus::Paused {
        return Ok(None);
    }
    let job = job(snapshot, &deployment.value)?;
    let description = deployment.value.running_description().to_owned();
    let resumed = moved(
        &deployment.value,
        DeploymentStatus::Running,
        description,
        now,
    );
    Ok(Some(
        Action::new(deployment.value.id, Reason::Resumed).with([
            update_deployment(deployment, resumed),
            create_eval(&deployment.value, &job.value, eval_id, now),
        ]),
    ))
}

/// Returns the refusal of a request to unblock a deployment: none is ever blocked.
pub fn unblock(deployment: &Indexed<Deployment>) -> DeploymentRefusal {
    DeploymentRefusal::NotBlocked(deployment.value.id)
}
