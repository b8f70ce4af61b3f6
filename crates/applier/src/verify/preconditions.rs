//! Preconditions of a whole plan: its evaluation, job and deployments have not changed.

use model::{DeploymentId, Plan};
use state::{Key, Snapshot};

use crate::pending::Pending;
use crate::verify::verdict::{PlanRefusal, PlanVerification};

/// An unmet precondition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum UnmetPrecondition {
    Refused(PlanRefusal),
    Waits,
}

impl From<UnmetPrecondition> for PlanVerification {
    fn from(unmet: UnmetPrecondition) -> Self {
        match unmet {
            UnmetPrecondition::Refused(refusal) => Self::Refused(refusal),
            UnmetPrecondition::Waits => Self::Waits,
        }
    }
}

/// # Errors
/// The first unmet precondition.
pub(crate) fn check(
    snapshot: &Snapshot,
    pending: &Pending,
    plan: &Plan,
) -> Result<(), UnmetPrecondition> {
    let refuse = |reason: String| {
        Err(UnmetPrecondition::Refused(PlanRefusal {
            reason,
            refresh_index: snapshot.index(),
        }))
    };
    if let Some(reason) = malformed(plan) {
        return refuse(reason);
    }
    let eval_id = plan.eval_id;
    let Some(eval) = snapshot.eval(eval_id) else {
        return refuse(format!("evaluation {eval_id} no longer exists"));
    };
    if pending.is_unshown(&Key::Eval(eval_id), eval.modify_index) {
        return Err(UnmetPrecondition::Waits);
    }
    // Of two workers with the same evaluation, the second finds it changed.
    if eval.modify_index != plan.eval_modify_index || eval.value.status.is_terminal() {
        return refuse(format!(
            "evaluation {eval_id} has changed since the plan was made"
        ));
    }
    let job_index = snapshot.job(&plan.job).map_or(0, |job| job.modify_index);
    if job_index != plan.job_modify_index {
        return refuse(format!(
            "job {} has changed since the plan was made",
            plan.job
        ));
    }
    for id in deployments(plan) {
        let Some(deployment) = snapshot.deployment(id) else {
            let makes_it = plan.deployment.as_ref().is_some_and(|made| made.id == id);
            if makes_it {
                continue;
            }
            return refuse(format!("deployment {id} no longer exists"));
        };
        if pending.is_unshown(&Key::Deployment(id), deployment.modify_index) {
            return Err(UnmetPrecondition::Waits);
        }
        if deployment.modify_index > plan.snapshot_index {
            return refuse(format!(
                "deployment {id} has changed since the plan was made"
            ));
        }
    }
    Ok(())
}

/// Returns the deployments that the plan creates, updates or places for; each once.
pub(crate) fn deployments(plan: &Plan) -> Vec<DeploymentId> {
    let made = plan.deployment.iter().map(|deployment| deployment.id);
    let moved = plan
        .deployment_updates
        .iter()
        .map(|update| update.deployment_id);
    let mut ids: Vec<_> = made.chain(moved).collect();
    for alloc in plan.placements.values().flatten() {
        // Nearly all allocations of a plan name the same one.
        if let Some(id) = alloc.deployment_id.filter(|id| ids.last() != Some(id)) {
            ids.push(id);
        }
    }
    ids.sort_unstable();
    ids.dedup();
    ids
}

/// Returns the first inconsistency within the plan; no scheduler sends such a plan.
fn malformed(plan: &Plan) -> Option<String> {
    for (node_id, allocs) in &plan.placements {
        for alloc in allocs {
            if alloc.node_id != *node_id
                || alloc.job_id != plan.job.job_id
                || alloc.namespace != plan.job.namespace
            {
                return Some(format!(
                    "allocation {} is not of this plan's job and node",
                    alloc.id
                ));
            }
        }
    }
    let outcome = plan.eval_outcome.as_ref()?;
    (outcome.id != plan.eval_id).then(|| format!("the outcome is of evaluation {}", outcome.id))
}
