//! Requests of users for a deployment, and automatic promotion.
//!
//! Each returns one transaction, or why the request is refused. The transaction compares what the
//! decision was based on: the deployment, the job where it matters, and the promoted canaries.

use std::collections::{BTreeMap, BTreeSet};

use model::refusal::Kind;
use model::{
    AllocClient, AllocId, Deployment, DeploymentCounts, DeploymentHealth, DeploymentId,
    DeploymentStatus, EvalId, Indexed, Job, Timestamp,
};
use state::{AllocView, Entity, Key, Snapshot, Write};

use crate::action::{Action, Cause, Reason, update_deployment};
use crate::outcome::{self, Revert, create_eval, moved};
use crate::progress::healthy_canaries;

/// The largest number of canaries that a promotion compares, with two compares each: with the other
/// writes well below a transaction's 1,000. Further canaries are not compared.
const MAX_COMPARED_CANARIES: usize = 200;

/// The largest number of allocations whose health one request sets: as many writes, in one
/// transaction.
pub const MAX_HEALTH_CHANGES: usize = 500;

/// A request is refused. Final only if the snapshot is as new as the request.
///
/// Source of the texts that others may look for: Nomad.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DeploymentRefusal {
    #[error(
        "can't {doing} terminal deployment: {id} is {status} already; 'kafila job run FILE' begins a \
         new one"
    )]
    Terminal {
        doing: &'static str,
        id: DeploymentId,
        status: &'static str,
    },
    /// The scheduler is about to end it.
    #[error(
        "the deployment is about to be cancelled: job {job_id:?} is stopped, purged or at another \
         version"
    )]
    Overtaken { job_id: String },
    /// Of the groups that were named, or of all of them.
    #[error("{}", joined(.0))]
    Groups(Vec<GroupProblem>),
    #[error("no canaries to promote: only a deployment with `canary` in its `update` waits for it")]
    NothingToPromote,
    #[error(
        "must specify at least one healthy/unhealthy allocation ID: 'kafila job allocs' lists them"
    )]
    NoHealth,
    #[error("{count} allocations at once are too many: want at most {MAX_HEALTH_CHANGES}")]
    TooManyHealth { count: usize },
    #[error("allocation {0} is named twice: want it as healthy or as unhealthy, once")]
    HealthTwice(AllocId),
    #[error(
        "allocation {0} is not in the deployment: 'kafila deployment status -verbose' lists its \
         allocations"
    )]
    NotInDeployment(AllocId),
    #[error("allocation {0} has ended and cannot be healthy: leave it out")]
    Ended(AllocId),
    #[error(
        "deployment {0} cannot be unblocked: only deployments over several regions are ever blocked, \
         and there is one region"
    )]
    NotBlocked(DeploymentId),
}

impl model::Refusal for DeploymentRefusal {
    fn kind(&self) -> Kind {
        match self {
            Self::NoHealth
            | Self::TooManyHealth { .. }
            | Self::HealthTwice(_)
            | Self::NotInDeployment(_) => Kind::Invalid,
            Self::Terminal { .. }
            | Self::Overtaken { .. }
            | Self::Groups(_)
            | Self::NothingToPromote
            | Self::Ended(_)
            | Self::NotBlocked(_) => Kind::Precondition,
        }
    }
}

/// The reason why a task group is not promoted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GroupProblem {
    #[error("Task group {0:?} is not in the deployment")]
    Unknown(String),
    #[error("Task group {0:?} has no canaries to promote")]
    NoCanaries(String),
    #[error("Task group {0:?} is promoted already")]
    Promoted(String),
    #[error("Task group {group:?} has {healthy}/{desired} healthy allocations")]
    Unhealthy {
        group: String,
        healthy: u32,
        desired: u32,
    },
}

fn joined(problems: &[GroupProblem]) -> String {
    let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
    problems.join("; ")
}

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

fn fail_for(
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

fn require_active(deployment: &Deployment, doing: &'static str) -> Result<(), DeploymentRefusal> {
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
fn job<'a>(
    snapshot: &'a Snapshot,
    deployment: &Deployment,
) -> Result<&'a Indexed<Job>, DeploymentRefusal> {
    let job = snapshot.job(&deployment.job).map(AsRef::as_ref);
    job.filter(|job| job.create_index == deployment.job_create_index)
        .ok_or_else(|| overtaken(deployment))
}

/// Returns the deployment's job if that is what the deployment rolls out.
fn current_job<'a>(
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

fn is_current(deployment: &Deployment, job: &Indexed<Job>) -> bool {
    !job.value.stop && job.value.version == deployment.job_version
}

fn overtaken(deployment: &Deployment) -> DeploymentRefusal {
    let job_id = deployment.job.job_id.to_string();
    DeploymentRefusal::Overtaken { job_id }
}
