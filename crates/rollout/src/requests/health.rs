//! Health of allocations as users report it.

use std::collections::BTreeMap;

use model::{
    AllocClient, AllocId, Deployment, DeploymentCounts, DeploymentHealth, EvalId, Indexed,
    Timestamp,
};
use state::{AllocView, Entity, Key, Snapshot, Write};

use super::failing::fail_for;
use super::refusal::{DeploymentRefusal, MAX_HEALTH_CHANGES};
use super::target::{job, require_active};
use crate::action::{Action, Cause, Reason};
use crate::outcome::create_eval;

/// Decides on a user's report of the health of allocations. An unhealthy one fails the deployment, and
/// reverts its job if the allocation's group has `auto_revert`.
///
/// # Errors
/// See [`DeploymentRefusal`].
pub fn set_alloc_health(
    snapshot: &Snapshot,
    deployment: &Indexed<Deployment>,
    healthy: &[AllocId],
    unhealthy: &[AllocId],
    eval_id: EvalId,
    now: Timestamp,
) -> Result<Action, DeploymentRefusal> {
    let verdicts = read_health(healthy, unhealthy)?;
    require_active(&deployment.value, "set health of allocations for a")?;
    let (mut clients, mut said) = (Vec::new(), Vec::new());
    let mut revert_wanted = false;
    for (id, healthy) in verdicts {
        let view = snapshot
            .alloc(id)
            .filter(|view| view.alloc.deployment_id == Some(deployment.value.id))
            .ok_or(DeploymentRefusal::NotInDeployment(id))?;
        if healthy && view.is_terminal() {
            return Err(DeploymentRefusal::Ended(id));
        }
        let group = deployment.value.groups.get(&*view.alloc.task_group);
        revert_wanted |= !healthy && group.is_some_and(|group| group.auto_revert);
        if let Some(write) = client_write(view, &deployment.value, healthy, now) {
            clients.push(write);
            said.push((view, healthy));
        }
    }
    let mut action = if unhealthy.is_empty() {
        let job = job(snapshot, &deployment.value)?;
        let unchanged = Write::RequireUnchanged {
            key: Key::Deployment(deployment.value.id),
            modify_index: deployment.modify_index,
        };
        let eval = create_eval(&deployment.value, &job.value, eval_id, now);
        Action::new(deployment.value.id, Reason::HealthSet).with([eval, unchanged])
    } else {
        let cause = Cause::Unhealthy;
        fail_for(snapshot, deployment, cause, revert_wanted, eval_id, now)?
    };
    // The final counts of an ended deployment include the report.
    for (view, healthy) in said {
        if let Some(counts) = final_counts(&mut action, &view.alloc.task_group) {
            count(counts, view.health().map(|before| before.healthy), healthy);
        }
    }
    Ok(action.with(clients))
}

fn final_counts<'a>(action: &'a mut Action, group: &str) -> Option<&'a mut DeploymentCounts> {
    let deployment = action.deployment_mut()?;
    deployment.groups.get_mut(group)?.final_counts.as_mut()
}

/// Counts a report that replaces the one before.
fn count(counts: &mut DeploymentCounts, before: Option<bool>, healthy: bool) {
    match before {
        Some(true) => counts.healthy = counts.healthy.saturating_sub(1),
        Some(false) => counts.unhealthy = counts.unhealthy.saturating_sub(1),
        None => {}
    }
    if healthy {
        counts.healthy += 1;
    } else {
        counts.unhealthy += 1;
    }
}

/// Returns allocation → healthy, each allocation once.
fn read_health(
    healthy: &[AllocId],
    unhealthy: &[AllocId],
) -> Result<BTreeMap<AllocId, bool>, DeploymentRefusal> {
    let count = healthy.len() + unhealthy.len();
    if count == 0 {
        return Err(DeploymentRefusal::NoHealth);
    }
    if count > MAX_HEALTH_CHANGES {
        return Err(DeploymentRefusal::TooManyHealth { count });
    }
    let healthy = healthy.iter().map(|id| (*id, true));
    let unhealthy = unhealthy.iter().map(|id| (*id, false));
    let mut verdicts = BTreeMap::new();
    for (id, is_healthy) in healthy.chain(unhealthy) {
        if verdicts.insert(id, is_healthy).is_some() {
            return Err(DeploymentRefusal::HealthTwice(id));
        }
    }
    Ok(verdicts)
}

/// Returns the write of the reported health; `None` if the allocation has that health already.
fn client_write(
    view: &AllocView,
    deployment: &Deployment,
    healthy: bool,
    now: Timestamp,
) -> Option<Write> {
    let said = view.health();
    if said.is_some_and(|said| said.healthy == healthy) {
        return None;
    }
    // The later report wins, whatever the node's clock says.
    let time = said.map_or(now, |said| {
        now.max(Timestamp(said.time.0.saturating_add(1)))
    });
    let client = view.client.as_deref().cloned().unwrap_or_default();
    let client = AllocClient {
        health: Some(DeploymentHealth {
            healthy,
            time,
            deployment_id: Some(deployment.id),
        }),
        modify_time: now,
        ..client
    };
    let key = Key::AllocClient(view.alloc.id);
    let entity = Entity::AllocClient(Box::new(client));
    Some(Write::put(key, view.client_modify_index, entity))
}
