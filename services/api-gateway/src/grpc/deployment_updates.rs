//! `kafila.v1.Deployments`: changes by users, decided by [`rollout::requests`].

use admission::jobs::request_id;
use gateway_core::{Error, Step};
use listing::NotFound;
use model::{
    AllocId, Deployment, DeploymentId, EvalId, Evaluation, FieldErrors, Indexed, Timestamp,
};
use proto::v1;
use rollout::requests::{self, PromotedGroups};
use rollout::{Action, outcome};
use service_kit::current_trace_parent;
use state::{Snapshot, set_trace_parent};
use store::SizeClass;
use tracing::info;

use super::query::Api;

/// One request to change a deployment.
struct UserRequest<'a> {
    /// For the evaluation's id and the log.
    verb: &'static str,
    deployment_id: &'a str,
    request_id: &'a str,
}

/// The inputs of a decision.
struct Inputs<'a> {
    snapshot: &'a Snapshot,
    deployment: &'a Indexed<Deployment>,
    eval_id: EvalId,
    now: Timestamp,
}

impl Api {
    pub(super) async fn promote_deployment(
        &self,
        request: v1::PromoteDeploymentRequest,
    ) -> Result<v1::UpdateDeploymentResponse, Error> {
        let which = match (request.all, request.task_groups.as_slice()) {
            (true, []) => PromotedGroups::All,
            (false, groups @ [_, ..]) => PromotedGroups::Named(groups),
            (all, _) => {
                let message = if all {
                    "has groups although all are asked for: want one of both"
                } else {
                    "missing: want the task groups to promote, or all"
                };
                return Err(Error::invalid_field("task_groups", message));
            }
        };
        let asked = UserRequest {
            verb: "promote",
            deployment_id: &request.deployment_id,
            request_id: &request.request_id,
        };
        let decide = |inputs: &Inputs<'_>| {
            requests::promote(
                inputs.snapshot,
                inputs.deployment,
                which,
                inputs.eval_id,
                inputs.now,
            )
            .map(Some)
        };
        self.update_deployment(asked, decide).await
    }

    pub(super) async fn pause_deployment(
        &self,
        request: v1::PauseDeploymentRequest,
    ) -> Result<v1::UpdateDeploymentResponse, Error> {
        let asked = UserRequest {
            verb: if request.pause { "pause" } else { "resume" },
            deployment_id: &request.deployment_id,
            request_id: &request.request_id,
        };
        let decide = |inputs: &Inputs<'_>| {
            if request.pause {
                requests::pause(inputs.deployment, inputs.now)
            } else {
                requests::resume(
                    inputs.snapshot,
                    inputs.deployment,
                    inputs.eval_id,
                    inputs.now,
                )
            }
        };
        self.update_deployment(asked, decide).await
    }

    pub(super) async fn fail_deployment(
        &self,
        request: v1::FailDeploymentRequest,
    ) -> Result<v1::UpdateDeploymentResponse, Error> {
        let asked = UserRequest {
            verb: "fail",
            deployment_id: &request.deployment_id,
            request_id: &request.request_id,
        };
        let decide = |inputs: &Inputs<'_>| {
            requests::fail(
                inputs.snapshot,
                inputs.deployment,
                inputs.eval_id,
                inputs.now,
            )
            .map(Some)
        };
        self.update_deployment(asked, decide).await
    }

    pub(super) async fn update_alloc_health(
        &self,
        request: v1::SetAllocHealthRequest,
    ) -> Result<v1::UpdateDeploymentResponse, Error> {
        let healthy = alloc_ids("healthy_alloc_ids", &request.healthy_alloc_ids)?;
        let unhealthy = alloc_ids("unhealthy_alloc_ids", &request.unhealthy_alloc_ids)?;
        let asked = UserRequest {
            verb: "set-alloc-health",
            deployment_id: &request.deployment_id,
            request_id: &request.request_id,
        };
        let decide = |inputs: &Inputs<'_>| {
            requests::set_alloc_health(
                inputs.snapshot,
                inputs.deployment,
                &healthy,
                &unhealthy,
                inputs.eval_id,
                inputs.now,
            )
            .map(Some)
        };
        self.update_deployment(asked, decide).await
    }

    pub(super) async fn unblock_deployment(
        &self,
        request: v1::UnblockDeploymentRequest,
    ) -> Result<v1::UpdateDeploymentResponse, Error> {
        let deployment_id = deployment_id(&request.deployment_id)?;
        let snapshot = self.gateway.core.fresh().await?;
        Err(requests::unblock(find(&snapshot, deployment_id)?).into())
    }

    /// Commits one change; `decide` returns `None` if the deployment is as requested already.
    async fn update_deployment(
        &self,
        asked: UserRequest<'_>,
        decide: impl Fn(&Inputs<'_>) -> Result<Option<Action>, requests::Refusal> + Send + Sync,
    ) -> Result<v1::UpdateDeploymentResponse, Error> {
        let gateway = &self.gateway;
        let deployment_id = deployment_id(asked.deployment_id)?;
        let eval_id = if asked.request_id.is_empty() {
            gateway.core.next_eval_id()
        } else {
            request_id::eval_id_of(asked.verb, &deployment_id.to_string(), asked.request_id)?
        };
        let now = gateway.core.now();
        let trace_parent = current_trace_parent();
        let decide = |snapshot: &Snapshot| {
            let deployment = find(snapshot, deployment_id)?;
            if let Some(eval) = snapshot.eval(eval_id) {
                return Ok(Step::Known(answer_again(snapshot, deployment, eval)));
            }
            let inputs = Inputs {
                snapshot,
                deployment,
                eval_id,
                now,
            };
            let Some(mut action) = decide(&inputs)? else {
                return Ok(Step::IfFresh(v1::UpdateDeploymentResponse {
                    deployment_modify_index: deployment.modify_index,
                    index: deployment.modify_index,
                    ..v1::UpdateDeploymentResponse::default()
                }));
            };
            set_trace_parent(&mut action.writes, &trace_parent);
            if action.job().is_some() {
                let txn = gateway.core.writer.txn_with(SizeClass::FollowUp);
                let sized = txn.with(&action.writes);
                if sized.is_err_and(|refusal| refusal.is_of_size()) {
                    // The user asked for the failure; the revert is only its consequence.
                    action = outcome::without_revert(action);
                }
            }
            Ok(commit(snapshot, deployment, &action))
        };
        let what = || format!("deployment {deployment_id}");
        let answer = gateway
            .core
            .execute_in(SizeClass::FollowUp, what, decide)
            .await?;
        info!(
            %deployment_id, verb = asked.verb, eval_id = answer.eval_id, index = answer.index,
            "deployment changed by a user"
        );
        Ok(answer)
    }
}

/// Returns the writes of an action and the answer to it.
fn commit(
    snapshot: &Snapshot,
    deployment: &Indexed<Deployment>,
    action: &Action,
) -> Step<v1::UpdateDeploymentResponse> {
    let eval_id = action.eval().map(|eval| eval.id.to_string());
    let is_written = action.deployment().is_some();
    let before = deployment.modify_index;
    let reverted_job_version = action
        .job()
        .and_then(|job| stable_version_like(snapshot, job));
    Step::Commit {
        writes: action.writes.clone(),
        answer: Box::new(move |revision| v1::UpdateDeploymentResponse {
            eval_create_index: if eval_id.is_some() { revision } else { 0 },
            eval_id: eval_id.unwrap_or_default(),
            deployment_modify_index: if is_written { revision } else { before },
            reverted_job_version,
            index: revision,
        }),
    }
}

/// Returns the answer of an earlier attempt, from the objects that it wrote.
fn answer_again(
    snapshot: &Snapshot,
    deployment: &Indexed<Deployment>,
    eval: &Indexed<Evaluation>,
) -> v1::UpdateDeploymentResponse {
    let written = eval.create_index;
    let mut versions = snapshot.job_versions(&deployment.value.job);
    let reverted = versions.find(|row| row.create_index == written);
    v1::UpdateDeploymentResponse {
        eval_id: eval.value.id.to_string(),
        eval_create_index: written,
        deployment_modify_index: deployment.modify_index,
        reverted_job_version: reverted.and_then(|row| stable_version_like(snapshot, &row.value)),
        index: written,
    }
}

/// Returns the newest stable version before `job` with the same spec: the one that it reverts to.
fn stable_version_like(snapshot: &Snapshot, job: &model::Job) -> Option<u64> {
    let key = job.key();
    let mut versions = snapshot.job_versions(&key).rev().filter(|row| {
        row.value.version < job.version && snapshot.is_stable(&key, row.value.version)
    });
    let found = versions.find(|row| !row.value.spec_differs(job));
    found.map(|row| row.value.version)
}

fn find(snapshot: &Snapshot, id: DeploymentId) -> Result<&Indexed<Deployment>, NotFound> {
    let deployment = snapshot.deployment(id).map(AsRef::as_ref);
    deployment.ok_or_else(|| NotFound::None {
        noun: "deployment",
        text: id.to_string(),
    })
}

/// Parses a whole id: changes accept no prefixes.
fn deployment_id(text: &str) -> Result<DeploymentId, FieldErrors> {
    text.parse().map_err(|_| {
        let mut errors = FieldErrors::default();
        errors.push(
            "deployment_id",
            format!(
                "{text:?} is not the id of a deployment: want all of it, as in \
                 8a3f2c1e-0b4d-4a7e-9c5f-6d7e8f901234"
            ),
        );
        errors
    })
}

fn alloc_ids(field: &str, texts: &[String]) -> Result<Vec<AllocId>, FieldErrors> {
    let mut errors = FieldErrors::default();
    let mut ids = Vec::new();
    // More are refused in any case, so the answer need not name all of their errors.
    for (position, text) in texts
        .iter()
        .take(requests::MAX_HEALTH_CHANGES + 1)
        .enumerate()
    {
        match text.parse() {
            Ok(id) => ids.push(id),
            Err(_) => errors.push(
                format!("{field}[{position}]"),
                format!("{text:?} is not the id of an allocation: want all of it"),
            ),
        }
    }
    errors.into_result(ids)
}
