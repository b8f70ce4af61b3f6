//! Failure of a deployment on request, and the revert of its job.

use model::{Deployment, EvalId, Indexed, Timestamp};
use state::{Snapshot, Write};

use super::refusal::DeploymentRefusal;
use super::target::{is_current, job, require_active};
use crate::action::{Action, Cause};
use crate::outcome::{self, Revert};

/// Decides on failing a deployment, which reverts its job if one of its groups has `auto_revert`.
///
/// # Errors
/// It has ended; its job is gone.
pub fn fail(
    snapshot: &Snapshot,
    deployment: &Indexed<Deployment>,
    eval_id: EvalId,
    now: Timestamp,
) -> Result<Action, DeploymentRefusal> {
    require_active(&deployment.value, "fail")?;
    let wanted = deployment.value.groups.values().any(|it| it.auto_revert);
    fail_for(snapshot, deployment, Cause::User, wanted, eval_id, now)
}

pub(super) fn fail_for(
    snapshot: &Snapshot,
    deployment: &Indexed<Deployment>,
    cause: Cause,
    revert_wanted: bool,
    eval_id: EvalId,
    now: Timestamp,
) -> Result<Action, DeploymentRefusal> {
    let job = job(snapshot, &deployment.value)?;
    let revert = if is_current(&deployment.value, job) {
        outcome::choose_revert(snapshot, job, revert_wanted, now)
    } else {
        // The job has changed since: do not undo that.
        Revert::NotWanted
    };
    let action = outcome::fail(snapshot, deployment, job, cause, revert, eval_id, now);
    let compare = action.job().is_none().then(|| Write::job_unchanged(job));
    Ok(action.with(compare))
}
