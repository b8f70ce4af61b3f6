//! What users ask of a deployment: decided by [`rollout::user`], carried out here.

use model::{
    AllocId, Deployment, DeploymentId, EvalId, Evaluation, FieldErrors, Indexed, Timestamp,
};
use proto::v1;
use rollout::user::{self, Which};
use rollout::{Action, outcome};
use service_kit::current_trace_parent;
use state::{Entity, Key, Snapshot};
use store::Room;
use tracing::info;

use super::Api;
use crate::admission::{request_id, versions};
use crate::error::Error;
use crate::gateway::Step;
use crate::reads::prefix::NotFound;
use crate::writes::{Write, into_txn};

/// One request to change a deployment.
struct Asked<'a> {
    /// For the evaluation's id and the log.
    verb: &'static str,
    deployment_id: &'a str,
    request_id: &'a str,
}

/// What a decision is made on.
struct Look<'a> {
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
        let which = match (request.all, request.groups.as_slice()) {
            (true, []) => Which::All,
            (false, groups @ [_, ..]) => Which::These(groups),
            (all, _) => {
                let mut errors = FieldErrors::default();
                let message = if all {
                    "has groups although all are asked for: want one of both"
                } else {
                    "missing: want the task groups to promote, or all"
                };
                errors.push("groups", message);
                return Err(errors.into());
            }
        };
        let asked = Asked {
            verb: "promote",
            deployment_id: &request.deployment_id,
            request_id: &request.request_id,
        };
        let decide = |look: &Look<'_>| {
            user::promote(
                look.snapshot,
                look.deployment,
                which,
                look.eval_id,
                look.now,
            )
            .map(Some)
        };
        self.update_deployment(asked, decide).await
    }

    pub(super) async fn pause_deployment(
        &self,
        request: v1::PauseDeploymentRequest,
    ) -> Result<v1::UpdateDeploymentResponse, Error> {
        let asked = Asked {
            verb: if request.pause { "pause" } else { "resume" },
            deployment_id: &request.deployment_id,
            request_id: &request.request_id,
        };
        let decide = |look: &Look<'_>| {
            if request.pause {
                user::pause(look.deployment, look.now)
            } else {
                user::resume(look.snapshot, look.deployment, look.eval_id, look.now)
            }
        };
        self.update_deployment(asked, decide).await
    }

    pub(super) async fn fail_deployment(
        &self,
        request: v1::FailDeploymentRequest,
    ) -> Result<v1::UpdateDeploymentResponse, Error> {
        let asked = Asked {
            verb: "fail",
            deployment_id: &request.deployment_id,
            request_id: &request.request_id,
        };
        let decide = |look: &Look<'_>| {
            user::fail(look.snapshot, look.deployment, look.eval_id, look.now).map(Some)
        };
        self.update_deployment(asked, decide).await
    }

    pub(super) async fn update_alloc_health(
        &self,
        request: v1::SetAllocHealthRequest,
    ) -> Result<v1::UpdateDeploymentResponse, Error> {
        let healthy = alloc_ids("healthy_alloc_ids", &request.healthy_alloc_ids)?;
        let unhealthy = alloc_ids("unhealthy_alloc_ids", &request.unhealthy_alloc_ids)?;
        let asked = Asked {
            verb: "set-alloc-health",
            deployment_id: &request.deployment_id,
            request_id: &request.request_id,
        };
        let decide = |look: &Look<'_>| {
            user::set_alloc_health(
                look.snapshot,
                look.deployment,
                &healthy,
                &unhealthy,
                look.eval_id,
                look.now,
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
        let snapshot = self.gateway.fresh().await?;
        find(&snapshot, deployment_id)?;
        Err(Error::NotBlocked { deployment_id })
    }

    /// Carries one change out, in one transaction; `decide` returns `None` where it is so already.
    async fn update_deployment(
        &self,
        asked: Asked<'_>,
        decide: impl Fn(&Look<'_>) -> Result<Option<Action>, user::Refusal> + Send + Sync,
    ) -> Result<v1::UpdateDeploymentResponse, Error> {
        let gateway = &self.gateway;
        let deployment_id = deployment_id(asked.deployment_id)?;
        let eval_id = if asked.request_id.is_empty() {
            gateway.next_eval_id()
        } else {
            request_id::eval_id_of(asked.verb, &deployment_id.to_string(), asked.request_id)?
        };
        let now = gateway.now();
        let trace_parent = current_trace_parent();
        let decide = |snapshot: &Snapshot| {
            let deployment = find(snapshot, deployment_id)?;
            if let Some(eval) = snapshot.eval(eval_id) {
                return Ok(Step::Known(answer_again(snapshot, deployment, eval)));
            }
            let look = Look {
                snapshot,
                deployment,
                eval_id,
                now,
            };
            let Some(mut action) = decide(&look)? else {
                return Ok(Step::IfFresh(v1::UpdateDeploymentResponse {
                    deployment_modify_index: deployment.modify_index,
                    index: deployment.modify_index,
                    ..v1::UpdateDeploymentResponse::default()
                }));
            };
            if action.job.is_some() {
                let room = gateway.writer.txn_with(Room::FollowUp);
                let whole = writes(snapshot, action.clone(), &trace_parent);
                if into_txn(room, &whole).is_err() {
                    // To fail it is what was asked for.
                    action = outcome::without_revert(action);
                }
            }
            Ok(commit(snapshot, deployment, action, &trace_parent))
        };
        let what = || format!("deployment {deployment_id}");
        let answer = gateway.carry_out_with(Room::FollowUp, what, decide).await?;
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
    action: Action,
    trace_parent: &str,
) -> Step<v1::UpdateDeploymentResponse> {
    let eval_id = action.eval.as_ref().map(|eval| eval.id.to_string());
    let is_written = action.deployment.is_some();
    let before = deployment.modify_index;
    let reverted_job_version = action
        .job
        .as_ref()
        .and_then(|job| stable_version_like(snapshot, &job.value));
    Step::Commit {
        writes: writes(snapshot, action, trace_parent),
        answer: Box::new(move |revision| v1::UpdateDeploymentResponse {
            eval_create_index: if eval_id.is_some() { revision } else { 0 },
            eval_id: eval_id.unwrap_or_default(),
            deployment_modify_index: if is_written { revision } else { before },
            reverted_job_version,
            index: revision,
        }),
    }
}

fn writes(snapshot: &Snapshot, action: Action, trace_parent: &str) -> Vec<Write> {
    let mut writes = Vec::new();
    if let Some(deployment) = action.deployment {
        writes.push(Write::Update {
            key: Key::Deployment(deployment.value.id),
            modify_index: deployment.modify_index,
            entity: Entity::Deployment(Box::new(deployment.value)),
        });
    }
    if let Some(job) = action.job {
        let key = job.value.key();
        writes.push(Write::Update {
            key: Key::Job(key.clone()),
            modify_index: job.modify_index,
            entity: Entity::Job(Box::new(job.value.clone())),
        });
        writes.push(Write::Create {
            key: Key::JobVersion(key.clone(), job.value.version),
            entity: Entity::JobVersion(Box::new(job.value)),
        });
        writes.extend(versions::prune(snapshot, &key));
    }
    if let Some(eval) = action.eval {
        let eval = Evaluation {
            trace_parent: trace_parent.to_owned(),
            ..eval
        };
        writes.push(Write::Create {
            key: Key::Eval(eval.id),
            entity: Entity::Eval(Box::new(eval)),
        });
    }
    for write in action.clients {
        let key = Key::AllocClient(write.alloc_id);
        let entity = Entity::AllocClient(Box::new(write.client));
        writes.push(match write.modify_index {
            0 => Write::Create { key, entity },
            modify_index => Write::Update {
                key,
                modify_index,
                entity,
            },
        });
    }
    let unchanged = action.unchanged.into_iter();
    writes
        .extend(unchanged.map(|(key, modify_index)| Write::RequireUnchanged { key, modify_index }));
    writes
}

/// Returns what the first attempt was answered with, from the traces it left.
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

/// Returns the newest stable version before `job` that says the same: what it goes back to.
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

/// Reads a whole id: what a change is about has to be said in full.
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
    // More are refused in any case: an answer need not name all that is wrong with them.
    for (position, text) in texts.iter().take(user::MAX_HEALTH_CHANGES + 1).enumerate() {
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
