//! Promotion of a deployment's canaries, by users and automatically.

use std::collections::BTreeSet;

use model::{Deployment, DeploymentStatus, EvalId, Indexed, Timestamp};
use state::{AllocView, Key, Snapshot, Write};

use super::refusal::{DeploymentRefusal, GroupProblem};
use super::target::{current_job, require_active};
use crate::action::{Action, Reason, update_deployment};
use crate::outcome::create_eval;
use crate::progress::healthy_canaries;

/// The largest number of canaries that a promotion compares, with two compares each: with the other
/// writes well below a transaction's 1,000. Further canaries are not compared.
const MAX_COMPARED_CANARIES: usize = 200;

/// The task groups of a promotion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PromotedGroups<'a> {
    /// All that wait for it.
    All,
    Named(&'a [String]),
}

/// Decides on promoting groups: their remaining allocations follow the canaries.
///
/// # Errors
/// See [`DeploymentRefusal`].
pub fn promote(
    snapshot: &Snapshot,
    deployment: &Indexed<Deployment>,
    which: PromotedGroups<'_>,
    eval_id: EvalId,
    now: Timestamp,
) -> Result<Action, DeploymentRefusal> {
    require_active(&deployment.value, "promote")?;
    let job = current_job(snapshot, &deployment.value)?;
    let chosen = choose(&deployment.value, which)?;
    if chosen.is_empty() {
        return Err(DeploymentRefusal::NothingToPromote);
    }
    let mut problems = Vec::new();
    for group in &chosen {
        let desired = deployment.value.groups[*group].desired_canaries;
        let healthy = healthy_canaries(snapshot, &deployment.value, group).count();
        let healthy = u32::try_from(healthy).unwrap_or(u32::MAX);
        if healthy < desired {
            problems.push(GroupProblem::Unhealthy {
                group: (*group).to_owned(),
                healthy,
                desired,
            });
        }
    }
    if !problems.is_empty() {
        return Err(DeploymentRefusal::Groups(problems));
    }
    let mut promoted = deployment.value.clone();
    for group in &chosen {
        if let Some(group) = promoted.groups.get_mut(*group) {
            group.promoted = true;
        }
    }
    if promoted.status == DeploymentStatus::Running {
        promoted
            .running_description()
            .clone_into(&mut promoted.status_description);
    }
    promoted.modify_time = now;
    let writes = [
        update_deployment(deployment, promoted),
        create_eval(&deployment.value, &job.value, eval_id, now),
        Write::job_unchanged(job),
    ];
    let canaries = chosen.iter().flat_map(|group| {
        let desired = deployment.value.groups[*group].desired_canaries as usize;
        // As many as were needed, and no more: the others may come and go.
        healthy_canaries(snapshot, &deployment.value, group).take(desired)
    });
    let canaries = canaries.take(MAX_COMPARED_CANARIES).flat_map(unchanged);
    Ok(Action::new(deployment.value.id, Reason::Promoted)
        .with(writes)
        .with(canaries))
}

/// Requires that both sides of an allocation are unchanged.
fn unchanged(view: &AllocView) -> [Write; 2] {
    let unchanged = |key, modify_index| Write::RequireUnchanged { key, modify_index };
    [
        unchanged(Key::Alloc(view.alloc.id), view.alloc_modify_index),
        unchanged(Key::AllocClient(view.alloc.id), view.client_modify_index),
    ]
}

/// Returns the groups to promote, each of which waits for it.
fn choose<'a>(
    deployment: &'a Deployment,
    which: PromotedGroups<'a>,
) -> Result<BTreeSet<&'a str>, DeploymentRefusal> {
    let names = match which {
        PromotedGroups::All => {
            let waiting = deployment.groups.iter();
            let waiting = waiting.filter(|(_, group)| group.awaits_promotion());
            return Ok(waiting.map(|(name, _)| name.as_str()).collect());
        }
        PromotedGroups::Named(names) => names,
    };
    let mut chosen = BTreeSet::new();
    let mut problems = Vec::new();
    for name in names {
        match deployment.groups.get(name) {
            None => problems.push(GroupProblem::Unknown(name.clone())),
            Some(group) if group.desired_canaries == 0 => {
                problems.push(GroupProblem::NoCanaries(name.clone()));
            }
            Some(group) if group.promoted => problems.push(GroupProblem::Promoted(name.clone())),
            Some(_) => {
                chosen.insert(name.as_str());
            }
        }
    }
    if problems.is_empty() {
        Ok(chosen)
    } else {
        Err(DeploymentRefusal::Groups(problems))
    }
}

/// Promotes all waiting groups, if all have `auto_promote` and all their canaries are healthy.
pub(crate) fn auto_promote(
    snapshot: &Snapshot,
    deployment: &Indexed<Deployment>,
    now: Timestamp,
    next_id: &mut dyn FnMut() -> EvalId,
) -> Option<Action> {
    let is_healthy = |(name, desired): (&String, u32)| {
        healthy_canaries(snapshot, &deployment.value, name).count() >= desired as usize
    };
    let groups = deployment.value.groups.iter();
    let mut waiting = groups
        .filter(|(_, group)| group.awaits_promotion())
        .map(|(name, group)| (name, group.desired_canaries));
    // Ids are drawn only for what is written.
    if !deployment.value.promotes_itself() || !waiting.all(is_healthy) {
        return None;
    }
    let promoted = promote(snapshot, deployment, PromotedGroups::All, next_id(), now).ok()?;
    Some(Action {
        reason: Reason::AutoPromoted,
        ..promoted
    })
}
