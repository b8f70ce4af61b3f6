//! `kafila.v1.Deployments`: changes by users, decided by [`rollout::update`].

use admission::jobs::request_id;
use gateway_core::{Error, Step};
use listing::{NotFound, whole_id, whole_ids};
use model::{AllocId, Deployment, DeploymentId, FieldErrors, Indexed};
use proto::v1;
use rollout::requests::{self, PromotedGroups};
use rollout::update::{UpdateAnswer, UpdateDecision, UpdateRequest, Verb, update};
use state::{Snapshot, Write};
use store::SizeClass;
use tracing::info;

use super::query::Api;

impl Api {
    pub(super) async fn promote_deployment(
        &self,
        request: v1::PromoteDeploymentRequest,
    ) -> Result<v1::UpdateDeploymentResponse, Error> {
        let groups = match (request.all, request.task_groups.as_slice()) {
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
        let verb = Verb::Promote(groups);
        self.update_deployment(&request.deployment_id, &request.request_id, verb)
            .await
    }

    pub(super) async fn pause_deployment(
        &self,
        request: v1::PauseDeploymentRequest,
    ) -> Result<v1::UpdateDeploymentResponse, Error> {
        let verb = if request.pause {
            Verb::Pause
        } else {
            Verb::Resume
        };
        self.update_deployment(&request.deployment_id, &request.request_id, verb)
            .await
    }

    pub(super) async fn fail_deployment(
        &self,
        request: v1::FailDeploymentRequest,
    ) -> Result<v1::UpdateDeploymentResponse, Error> {
        self.update_deployment(&request.deployment_id, &request.request_id, Verb::Fail)
            .await
    }

    pub(super) async fn update_alloc_health(
        &self,
        request: v1::SetAllocHealthRequest,
    ) -> Result<v1::UpdateDeploymentResponse, Error> {
        let verb = Verb::SetHealth {
            healthy: &alloc_ids("healthy_alloc_ids", &request.healthy_alloc_ids)?,
            unhealthy: &alloc_ids("unhealthy_alloc_ids", &request.unhealthy_alloc_ids)?,
        };
        self.update_deployment(&request.deployment_id, &request.request_id, verb)
            .await
    }

    pub(super) async fn unblock_deployment(
        &self,
        request: v1::UnblockDeploymentRequest,
    ) -> Result<v1::UpdateDeploymentResponse, Error> {
        let deployment_id = whole_id("deployment_id", &request.deployment_id)?;
        let snapshot = self.gateway.core.fresh().await?;
        Err(requests::unblock(find(&snapshot, deployment_id)?).into())
    }

    async fn update_deployment(
        &self,
        deployment: &str,
        request_id: &str,
        verb: Verb<'_>,
    ) -> Result<v1::UpdateDeploymentResponse, Error> {
        let core = &self.gateway.core;
        let deployment_id: DeploymentId = whole_id("deployment_id", deployment)?;
        let subject = deployment_id.to_string();
        let derive = |id: &str| request_id::eval_id_of(verb.as_str(), &subject, id);
        let context = self.request_context_of(request_id, derive)?;
        let request = UpdateRequest {
            verb,
            eval_id: context.eval_id,
            now: context.now,
            trace_parent: &context.trace_parent,
        };
        let fits = |writes: &[Write]| {
            let txn = core.writer.txn_with(SizeClass::FollowUp).with(writes);
            !txn.is_err_and(|refusal| refusal.is_of_size())
        };
        let decide = |snapshot: &Snapshot| {
            let deployment = find(snapshot, deployment_id)?;
            Ok(step(update(snapshot, deployment, &request, fits)?))
        };
        let what = || format!("deployment {deployment_id}");
        let answer = core.execute_in(SizeClass::FollowUp, what, decide).await?;
        info!(
            %deployment_id, verb = verb.as_str(), eval_id = %context.eval_id, index = answer.index,
            "deployment changed by a user"
        );
        Ok(response(answer))
    }
}

fn step(decision: UpdateDecision) -> Step<UpdateAnswer> {
    match decision {
        UpdateDecision::Done(answer) => Step::Known(answer),
        UpdateDecision::Unchanged(answer) => Step::IfFresh(answer),
        UpdateDecision::Commit(mut proposal) => Step::Commit {
            writes: std::mem::take(&mut proposal.writes),
            answer: Box::new(move |revision| proposal.answer(revision)),
        },
    }
}

fn response(answer: UpdateAnswer) -> v1::UpdateDeploymentResponse {
    let eval_id = answer.eval_id.map(|eval_id| eval_id.to_string());
    v1::UpdateDeploymentResponse {
        eval_id: eval_id.unwrap_or_default(),
        eval_create_index: answer.eval_create_index,
        deployment_modify_index: answer.deployment_modify_index,
        reverted_job_version: answer.reverted_job_version,
        index: answer.index,
    }
}

fn find(snapshot: &Snapshot, id: DeploymentId) -> Result<&Indexed<Deployment>, NotFound> {
    let deployment = snapshot.deployment(id).map(AsRef::as_ref);
    deployment.ok_or_else(|| NotFound::None {
        noun: "deployment",
        text: id.to_string(),
    })
}

/// Parses ids of allocations. More than the limit are refused in any case, so the answer need not name
/// all of their errors.
fn alloc_ids(field: &str, texts: &[String]) -> Result<Vec<AllocId>, FieldErrors> {
    whole_ids(field, texts.iter().take(requests::MAX_HEALTH_CHANGES + 1))
}
