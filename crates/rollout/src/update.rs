//! Users' changes of deployments: the request's verb, its writes and the answer.
//!
//! A request with an id that was committed before gets the answer of the first time, from the objects
//! that it wrote.

use model::{AllocId, Deployment, EvalId, Evaluation, Indexed, Job, Timestamp};
use state::{Snapshot, Write, set_trace_parent};

use crate::action::Action;
use crate::outcome;
use crate::requests::{self, DeploymentRefusal, PromotedGroups};

/// The change that a user asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb<'a> {
    Promote(PromotedGroups<'a>),
    Pause,
    Resume,
    Fail,
    SetHealth {
        healthy: &'a [AllocId],
        unhealthy: &'a [AllocId],
    },
}

impl Verb<'_> {
    /// Returns the name, for logs and for the ids of repeated requests.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Promote(_) => "promote",
            Self::Pause => "pause",
            Self::Resume => "resume",
            Self::Fail => "fail",
            Self::SetHealth { .. } => "set-alloc-health",
        }
    }
}

/// A request, the same in every attempt.
#[derive(Clone, Copy, Debug)]
pub struct UpdateRequest<'a> {
    pub verb: Verb<'a>,
    /// The id of the evaluation that the request creates.
    pub eval_id: EvalId,
    pub now: Timestamp,
    /// The trace that the request is part of; empty: none.
    pub trace_parent: &'a str,
}

/// The decision on a request, as of one snapshot.
#[derive(Clone, Debug, PartialEq)]
pub enum UpdateDecision {
    /// An earlier attempt of the same request was committed.
    Done(UpdateAnswer),
    /// The deployment is as requested: final in a fresh snapshot only.
    Unchanged(UpdateAnswer),
    /// To be written in one transaction.
    Commit(UpdateProposal),
}

/// The answer to a request. Indexes are revisions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UpdateAnswer {
    /// `None`: there is nothing to evaluate.
    pub eval_id: Option<EvalId>,
    /// 0: there is no evaluation.
    pub eval_create_index: u64,
    pub deployment_modify_index: u64,
    /// The version that the job goes back to; `None`: the job stays.
    pub reverted_job_version: Option<u64>,
    /// The revision of the writes.
    pub index: u64,
}

/// Writes, and the answer's parts that are known before the commit.
#[derive(Clone, Debug, PartialEq)]
pub struct UpdateProposal {
    pub writes: Vec<Write>,
    eval_id: Option<EvalId>,
    /// `None`: the deployment itself is written.
    kept_modify_index: Option<u64>,
    reverted_job_version: Option<u64>,
}

impl UpdateProposal {
    /// Returns the answer, given the commit's revision.
    pub fn answer(&self, revision: u64) -> UpdateAnswer {
        UpdateAnswer {
            eval_id: self.eval_id,
            eval_create_index: self.eval_id.map_or(0, |_| revision),
            deployment_modify_index: self.kept_modify_index.unwrap_or(revision),
            reverted_job_version: self.reverted_job_version,
            index: revision,
        }
    }
}

/// Decides on a request. `fits`: whether writes fit in one transaction.
///
/// A failure whose revert does not fit is written without it: the user asked for the failure, and the
/// revert is only its consequence.
///
/// # Errors
/// See [`DeploymentRefusal`].
pub fn update(
    snapshot: &Snapshot,
    deployment: &Indexed<Deployment>,
    request: &UpdateRequest<'_>,
    fits: impl FnOnce(&[Write]) -> bool,
) -> Result<UpdateDecision, DeploymentRefusal> {
    if let Some(eval) = snapshot.eval(request.eval_id) {
        let answer = replay_answer(snapshot, deployment, eval);
        return Ok(UpdateDecision::Done(answer));
    }
    let Some(mut action) = action(snapshot, deployment, request)? else {
        return Ok(UpdateDecision::Unchanged(UpdateAnswer {
            deployment_modify_index: deployment.modify_index,
            index: deployment.modify_index,
            ..UpdateAnswer::default()
        }));
    };
    set_trace_parent(&mut action.writes, request.trace_parent);
    if !fits(&action.writes) {
        action = outcome::without_revert(action.clone()).unwrap_or(action);
    }
    let is_written = action.deployment().is_some();
    let reverted = action.job();
    Ok(UpdateDecision::Commit(UpdateProposal {
        eval_id: action.eval().map(|eval| eval.id),
        kept_modify_index: (!is_written).then_some(deployment.modify_index),
        reverted_job_version: reverted.and_then(|job| stable_version_like(snapshot, job)),
        writes: action.writes,
    }))
}

/// Returns the action of a request; `None`: the deployment is as requested.
fn action(
    snapshot: &Snapshot,
    deployment: &Indexed<Deployment>,
    request: &UpdateRequest<'_>,
) -> Result<Option<Action>, DeploymentRefusal> {
    let (eval_id, now) = (request.eval_id, request.now);
    match request.verb {
        Verb::Promote(groups) => {
            requests::promote(snapshot, deployment, groups, eval_id, now).map(Some)
        }
        Verb::Pause => requests::pause(deployment, now),
        Verb::Resume => requests::resume(snapshot, deployment, eval_id, now),
        Verb::Fail => requests::fail(snapshot, deployment, eval_id, now).map(Some),
        Verb::SetHealth { healthy, unhealthy } => {
            requests::set_alloc_health(snapshot, deployment, healthy, unhealthy, eval_id, now)
                .map(Some)
        }
    }
}

/// Returns the answer of an earlier attempt, from the objects that it wrote.
fn replay_answer(
    snapshot: &Snapshot,
    deployment: &Indexed<Deployment>,
    eval: &Indexed<Evaluation>,
) -> UpdateAnswer {
    let written = eval.create_index;
    let mut versions = snapshot.job_versions(&deployment.value.job);
    let reverted = versions.find(|row| row.create_index == written);
    UpdateAnswer {
        eval_id: Some(eval.value.id),
        eval_create_index: written,
        deployment_modify_index: deployment.modify_index,
        reverted_job_version: reverted.and_then(|row| stable_version_like(snapshot, &row.value)),
        index: written,
    }
}

/// Returns the newest stable version before `job` with the same spec: the one that it reverts to.
fn stable_version_like(snapshot: &Snapshot, job: &Job) -> Option<u64> {
    let key = job.key();
    let mut versions = snapshot.job_versions(&key).rev().filter(|row| {
        row.value.version < job.version && snapshot.is_stable(&key, row.value.version)
    });
    let found = versions.find(|row| !row.value.spec_differs(job));
    found.map(|row| row.value.version)
}
