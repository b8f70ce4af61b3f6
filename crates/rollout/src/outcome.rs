//! The transactions that end a deployment, revert its job, or request an evaluation of it.

use model::{
    Deployment, DeploymentStatus, EvalId, Evaluation, Indexed, Job, NodePool, Timestamp,
    TriggeredBy,
};
use state::{Entity, Key, Snapshot, Write, job_versions};

use crate::action::{Action, Cause, Reason, update_deployment, update_job};

/// The revert of a failed deployment.
#[derive(Clone, Debug, PartialEq)]
pub enum Revert {
    NotWanted,
    /// No version of the job was ever stable.
    NoStableVersion,
    /// The newest stable version has the same specification as the current one.
    SameSpec {
        version: u64,
    },
    /// The node pool of the stable version is deleted, or being deleted.
    NoNodePool {
        version: u64,
        pool: String,
    },
    To {
        version: u64,
        job: Box<Job>,
        /// Requires that the job's node pool is unchanged; `None`: it is built in.
        pool: Option<Write>,
    },
}

/// Returns the revert of a failed deployment's job: its newest stable version, under a new version
/// number.
pub fn choose_revert(
    snapshot: &Snapshot,
    job: &Indexed<Job>,
    wanted: bool,
    now: Timestamp,
) -> Revert {
    if !wanted {
        return Revert::NotWanted;
    }
    let key = job.value.key();
    let stable = snapshot
        .job_versions(&key)
        .rev()
        .find(|version| !version.value.stop && snapshot.is_stable(&key, version.value.version));
    let Some(stable) = stable else {
        return Revert::NoStableVersion;
    };
    let version = stable.value.version;
    if !stable.value.spec_differs(&job.value) {
        return Revert::SameSpec { version };
    }
    let Ok(pool) = node_pool(snapshot, &stable.value) else {
        let pool = stable.value.node_pool.clone();
        return Revert::NoNodePool { version, pool };
    };
    let job = Job {
        version: job.value.version + 1,
        forced_version: job.value.forced_version,
        submit_time: now,
        ..stable.value.clone()
    };
    Revert::To {
        version,
        job: Box::new(job),
        pool,
    }
}

/// The pool does not exist, or is being deleted.
struct PoolGone;

/// Returns the compare that keeps a job's node pool in existence; `None`: the pool is built in.
///
/// A deletion marks the pool first and then looks for jobs in it. So every job that joins, by a
/// registration or a revert, compares the pool in its own transaction.
fn node_pool(snapshot: &Snapshot, job: &Job) -> Result<Option<Write>, PoolGone> {
    let name = &job.node_pool;
    if NodePool::is_built_in(name) {
        return Ok(None);
    }
    let stored = snapshot.node_pool(name).filter(|pool| !pool.value.deleting);
    let stored = stored.ok_or(PoolGone)?;
    Ok(Some(Write::RequireUnchanged {
        key: Key::NodePool(name.clone()),
        modify_index: stored.modify_index,
    }))
}

/// Returns the transaction that fails a deployment, reverts its job if `revert` says so, and creates
/// an evaluation.
///
/// Source of the texts: they are wire format, which Nomad's clients show and compare.
pub fn fail(
    snapshot: &Snapshot,
    deployment: &Indexed<Deployment>,
    job: &Indexed<Job>,
    cause: Cause,
    revert: Revert,
    eval_id: EvalId,
    now: Timestamp,
) -> Action {
    let what = match cause {
        Cause::Unhealthy => "Failed due to unhealthy allocations",
        Cause::ProgressDeadline => "Failed due to progress deadline",
        Cause::User => "Deployment marked as failed",
    };
    let and = match &revert {
        Revert::NotWanted => String::new(),
        Revert::NoStableVersion => " - no stable job version to auto revert to".to_owned(),
        Revert::SameSpec { version } => format!(
            " - not rolling back to stable job version {version} as current job has same specification"
        ),
        // Ours: Nomad reverts without this check.
        Revert::NoNodePool { version, pool } => format!(
            " - not rolling back to stable job version {version} as its node pool {pool:?} is gone"
        ),
        Revert::To { version, .. } => format!(" - rolling back to job version {version}"),
    };
    let status = DeploymentStatus::Failed;
    let failed = ended(snapshot, deployment, status, format!("{what}{and}"), now);
    let action = Action::new(deployment.value.id, Reason::Failed(cause))
        .with([update_deployment(deployment, failed)]);
    let action = match revert {
        Revert::To {
            job: reverted,
            pool,
            ..
        } => action
            .with(update_job(job, *reverted))
            .with(pool)
            .with(job_versions::prune(snapshot, &deployment.value.job)),
        _ => action,
    };
    action.with([create_eval(&deployment.value, &job.value, eval_id, now)])
}

/// Returns the action to write instead of one that exceeds a transaction: the same failure of the
/// deployment without the revert of its job, because a rollout that could not end would be worse. `None`:
/// the action has no revert, so nothing of it can be left out.
pub fn without_revert(mut action: Action) -> Option<Action> {
    action.job()?;
    // The compare of the node pool goes too: without the revert no job joins it. So do the deletions
    // of old versions, which make room for the new one.
    action.writes.retain(|write| {
        let is_job = matches!(write.key(), Key::Job(_) | Key::JobVersion(..));
        !is_job && write.entity().is_some()
    });
    if let Some(deployment) = action.deployment_mut() {
        let description = &mut deployment.status_description;
        *description = description.replacen(" - rolling back to", " - not rolling back to", 1);
        description.push_str(" as the job is too large to be stored together with that");
    }
    Some(action)
}

/// Returns the transaction that cancels a deployment whose job is gone.
pub fn cancel(snapshot: &Snapshot, deployment: &Indexed<Deployment>, now: Timestamp) -> Action {
    // The same text as for a stopped job: for the user there is no difference.
    let description = "Cancelled because job is stopped".to_owned();
    let status = DeploymentStatus::Cancelled;
    let cancelled = ended(snapshot, deployment, status, description, now);
    // A job that is missing here may be one that only later versions can decode: then it is in the store.
    let job = &deployment.value.job;
    let read = snapshot.job(job).map_or(0, |job| job.modify_index);
    let unchanged = Write::require(Key::Job(job.clone()), read);
    Action::new(deployment.value.id, Reason::JobGone)
        .with([unchanged, update_deployment(deployment, cancelled)])
}

/// Returns the transaction that creates an evaluation of a deployment's job.
pub fn evaluate(deployment: &Deployment, job: &Job, eval_id: EvalId, now: Timestamp) -> Action {
    Action::new(deployment.id, Reason::Health).with([create_eval(deployment, job, eval_id, now)])
}

/// Returns the transaction that marks a successful deployment's version as stable; `None` when it
/// is marked already, or when the version is gone.
pub fn mark_stable(snapshot: &Snapshot, deployment: &Deployment) -> Option<Action> {
    let (key, version) = (&deployment.job, deployment.job_version);
    if snapshot.is_stable(key, version) {
        return None;
    }
    // A job of the same name that was registered after a purge is another job.
    snapshot
        .job(key)
        .filter(|job| job.create_index == deployment.job_create_index)?;
    let kept = snapshot.job_version(key, version)?;
    let unchanged = Write::version_unchanged(kept);
    let mark = Write::Create {
        key: Key::JobStable(key.clone(), version),
        entity: Entity::JobStable,
    };
    Some(Action::new(deployment.id, Reason::Stable).with([unchanged, mark]))
}

fn ended(
    snapshot: &Snapshot,
    deployment: &Indexed<Deployment>,
    status: DeploymentStatus,
    description: String,
    now: Timestamp,
) -> Deployment {
    let mut ended = moved(&deployment.value, status, description, now);
    snapshot.note_final_counts(&mut ended);
    ended
}

pub(crate) fn moved(
    deployment: &Deployment,
    status: DeploymentStatus,
    status_description: String,
    now: Timestamp,
) -> Deployment {
    Deployment {
        status,
        status_description,
        modify_time: now,
        ..deployment.clone()
    }
}

/// Creates an evaluation of a deployment's job.
pub(crate) fn create_eval(deployment: &Deployment, job: &Job, id: EvalId, now: Timestamp) -> Write {
    let priority = match deployment.eval_priority {
        0 => job.priority,
        priority => priority,
    };
    Write::create_eval(Evaluation {
        deployment_id: Some(deployment.id),
        ..Evaluation::pending(
            id,
            deployment.job.clone(),
            job.job_type,
            priority,
            TriggeredBy::DeploymentWatcher,
            now,
        )
    })
}
