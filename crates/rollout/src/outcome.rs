//! The values that the deployment-watcher writes.

use model::{
    Deployment, DeploymentStatus, EvalId, Evaluation, Indexed, Job, JobKey, NodePool, Timestamp,
    TriggeredBy,
};
use state::{Key, Snapshot};

use crate::action::{Action, Cause, Reason};

/// What a failed deployment goes back to.
#[derive(Clone, Debug, PartialEq)]
pub enum Revert {
    NotWanted,
    /// No version of the job was ever stable.
    NoStableVersion,
    /// The newest stable version is what runs already.
    SameSpec {
        version: u64,
    },
    /// The node pool that the stable version ran in is gone, or going.
    NoNodePool {
        version: u64,
        pool: String,
    },
    To {
        version: u64,
        job: Box<Job>,
        /// The job's node pool, with its modify index; `None`: it is built in.
        pool: Option<(Key, u64)>,
    },
}

/// Returns what the job of a failed deployment is to go back to: its newest stable version, as a
/// version of its own.
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
        submit_time: now,
        ..stable.value.clone()
    };
    Revert::To {
        version,
        job: Box::new(job),
        pool,
    }
}

/// The pool is not there, or is being deleted.
struct PoolGone;

/// Returns what has to stay as it is of a job's node pool; `None`: the pool is built in.
///
/// Whoever deletes a pool marks it first, and then looks whose jobs are in it: a job that joins
/// compares the pool in its own transaction, a registration as well as a revert.
fn node_pool(snapshot: &Snapshot, job: &Job) -> Result<Option<(Key, u64)>, PoolGone> {
    let name = &job.node_pool;
    if NodePool::is_built_in(name) {
        return Ok(None);
    }
    let stored = snapshot.node_pool(name).filter(|pool| !pool.value.deleting);
    let stored = stored.ok_or(PoolGone)?;
    Ok(Some((Key::NodePool(name.clone()), stored.modify_index)))
}

/// Returns the transaction that fails a deployment, reverts its job if that is wanted, and has the
/// scheduler look.
///
/// Source of the texts: they are wire format, Nomad's clients show and compare them.
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
        // Ours: there a revert does not ask.
        Revert::NoNodePool { version, pool } => format!(
            " - not rolling back to stable job version {version} as its node pool {pool:?} is gone"
        ),
        Revert::To { version, .. } => format!(" - rolling back to job version {version}"),
    };
    let (reverted, pool) = match revert {
        Revert::To {
            job: value, pool, ..
        } => {
            let reverted = Indexed {
                create_index: job.create_index,
                modify_index: job.modify_index,
                value: *value,
            };
            (Some(reverted), pool)
        }
        _ => (None, None),
    };
    let status = DeploymentStatus::Failed;
    Action {
        deployment: Some(ended(
            snapshot,
            deployment,
            status,
            format!("{what}{and}"),
            now,
        )),
        job: reverted,
        eval: Some(eval(&deployment.value, &job.value, eval_id, now)),
        unchanged: pool.into_iter().collect(),
        ..Action::new(deployment.value.id, Reason::Failed(cause))
    }
}

/// Returns the transaction that fails a deployment without reverting its job, where both together
/// are more than one transaction takes: a rollout that could not end would be worse.
pub fn without_revert(mut action: Action) -> Action {
    if action.job.take().is_none() {
        return action;
    }
    // What it goes back to would have joined its node pool.
    action.unchanged.clear();
    if let Some(deployment) = &mut action.deployment {
        let description = &mut deployment.value.status_description;
        *description = description.replacen(" - rolling back to", " - not rolling back to", 1);
        description.push_str(" as the job is too large to be stored together with that");
    }
    action
}

/// Returns the transaction that ends a deployment whose job is no more.
pub fn cancel(snapshot: &Snapshot, deployment: &Indexed<Deployment>, now: Timestamp) -> Action {
    // The same text as for a job that was stopped: to its users it is.
    let description = "Cancelled because job is stopped".to_owned();
    let status = DeploymentStatus::Cancelled;
    Action {
        deployment: Some(ended(snapshot, deployment, status, description, now)),
        ..Action::new(deployment.value.id, Reason::JobGone)
    }
}

/// Returns the transaction that has the scheduler look at a deployment's job.
pub fn look_again(deployment: &Deployment, job: &Job, eval_id: EvalId, now: Timestamp) -> Action {
    Action {
        eval: Some(eval(deployment, job, eval_id, now)),
        ..Action::new(deployment.id, Reason::Health)
    }
}

/// Returns the transaction that marks a successful deployment's version as stable; `None` when it
/// is, or when the version is no more.
pub fn mark_stable(snapshot: &Snapshot, deployment: &Deployment) -> Option<Action> {
    let (key, version) = (&deployment.job, deployment.job_version);
    if snapshot.is_stable(key, version) {
        return None;
    }
    // A job of the same name that came after a purge is another job.
    snapshot
        .job(key)
        .filter(|job| job.create_index == deployment.job_create_index)?;
    let kept = snapshot.job_version(key, version)?;
    let stable: Indexed<(JobKey, u64)> = Indexed {
        create_index: kept.create_index,
        modify_index: kept.modify_index,
        value: (key.clone(), version),
    };
    Some(Action {
        stable: Some(stable),
        ..Action::new(deployment.id, Reason::Stable)
    })
}

fn ended(
    snapshot: &Snapshot,
    deployment: &Indexed<Deployment>,
    status: DeploymentStatus,
    description: String,
    now: Timestamp,
) -> Indexed<Deployment> {
    let mut ended = moved(deployment, status, description, now);
    snapshot.note_final_counts(&mut ended.value);
    ended
}

pub(crate) fn moved(
    deployment: &Indexed<Deployment>,
    status: DeploymentStatus,
    status_description: String,
    now: Timestamp,
) -> Indexed<Deployment> {
    Indexed {
        create_index: deployment.create_index,
        modify_index: deployment.modify_index,
        value: Deployment {
            status,
            status_description,
            modify_time: now,
            ..deployment.value.clone()
        },
    }
}

pub(crate) fn eval(deployment: &Deployment, job: &Job, id: EvalId, now: Timestamp) -> Evaluation {
    let priority = match deployment.eval_priority {
        0 => job.priority,
        priority => priority,
    };
    Evaluation {
        deployment_id: Some(deployment.id),
        ..Evaluation::pending(
            id,
            deployment.job.clone(),
            job.job_type,
            priority,
            TriggeredBy::DeploymentWatcher,
            now,
        )
    }
}
