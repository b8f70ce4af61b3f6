//! `kafila.v1.Jobs`: dispatch, forced launch, evaluation and scaling.

use admission::jobs::dispatch::{self, DispatchRequest};
use admission::jobs::evaluate::{self, EvaluateRequest};
use admission::jobs::missing::find_job;
use admission::jobs::scale::{self, ScaleRequest};
use admission::jobs::{JobRefusal, Outcome, Receipt, RequestContext, force};
use gateway_core::{Error, Step};
use model::{EvalId, JobKey, Payload};
use proto::v1;
use state::Snapshot;
use store::SizeClass;
use tonic::Request;
use tracing::info;

use super::query::{Api, Read, open};
use crate::gateway::Work;
use crate::reads::index::{self, JOB_TABLES};
use crate::reads::options::job_key as checked_job_key;

/// The receipt of an operation, and its revision.
pub(super) type Done = (Receipt, u64);

impl Api {
    pub(super) async fn dispatch_job(
        &self,
        request: v1::DispatchJobRequest,
    ) -> Result<v1::DispatchJobResponse, Error> {
        let gateway = &self.gateway;
        let parent = checked_job_key("namespace", &request.namespace, &request.job_id)?;
        let asked = DispatchRequest {
            parent: parent.clone(),
            payload: Payload(request.payload),
            meta: request.meta.into_iter().collect(),
            token: request.idempotency_token,
            id_template: request.id_prefix_template,
            priority: request.priority,
            nonce: u32::try_from(gateway.core.ids.next_u64() >> 32).unwrap_or(0),
            max_open_evals: gateway.config.max_open_evals,
        };
        let decide = |snapshot: &Snapshot, context: &RequestContext| {
            dispatch::dispatch(snapshot, &asked, context)
        };
        let operating = self.operate(&parent, SizeClass::Dispatch, decide);
        let (receipt, index) = operating.await?;
        info!(
            namespace = %parent.namespace, job_id = receipt.job_id, index, "job dispatched"
        );
        Ok(v1::DispatchJobResponse {
            eval_id: text(receipt.eval_id),
            eval_create_index: receipt.eval_id.map_or(0, |_| index),
            job_create_index: receipt.job_index.unwrap_or(index),
            dispatched_job_id: receipt.job_id,
            index,
        })
    }

    pub(super) async fn force_job(
        &self,
        request: v1::ForcePeriodicJobRequest,
    ) -> Result<v1::ForcePeriodicJobResponse, Error> {
        let key = checked_job_key("namespace", &request.namespace, &request.job_id)?;
        let max_open_evals = self.gateway.config.max_open_evals;
        let decide = |snapshot: &Snapshot, context: &RequestContext| {
            force::force(snapshot, &key, max_open_evals, context)
        };
        let operating = self.operate(&key, SizeClass::FollowUp, decide);
        let (receipt, index) = operating.await?;
        info!(namespace = %key.namespace, job_id = receipt.job_id, index, "job launched");
        Ok(v1::ForcePeriodicJobResponse {
            eval_id: text(receipt.eval_id),
            eval_create_index: index,
            child_job_id: receipt.job_id,
            index,
        })
    }

    pub(super) async fn evaluate_job(
        &self,
        request: v1::EvaluateJobRequest,
    ) -> Result<v1::EvaluateJobResponse, Error> {
        let key = checked_job_key("namespace", &request.namespace, &request.job_id)?;
        let asked = EvaluateRequest {
            force_reschedule: request.force_reschedule,
            max_open_evals: self.gateway.config.max_open_evals,
        };
        let decide = |snapshot: &Snapshot, context: &RequestContext| {
            evaluate::evaluate(snapshot, &key, asked, context)
        };
        let operating = self.operate(&key, SizeClass::FollowUp, decide);
        let (receipt, index) = operating.await?;
        info!(namespace = %key.namespace, job_id = %key.job_id, index, "job evaluated");
        Ok(v1::EvaluateJobResponse {
            eval_id: text(receipt.eval_id),
            eval_create_index: index,
            job_modify_index: receipt.job_index.unwrap_or(index),
            index,
        })
    }

    pub(super) async fn scale_job(
        &self,
        request: v1::ScaleJobRequest,
    ) -> Result<v1::ScaleJobResponse, Error> {
        let key = checked_job_key("namespace", &request.namespace, &request.job_id)?;
        let asked = ScaleRequest {
            job: key.clone(),
            group: request.task_group,
            count: request.count,
            message: request.message,
            error: request.error,
            meta: request.meta.into_iter().collect(),
            check_index: request.check_index,
            max_open_evals: self.gateway.config.max_open_evals,
        };
        let decide =
            |snapshot: &Snapshot, context: &RequestContext| scale::scale(snapshot, &asked, context);
        let operating = self.operate(&key, SizeClass::FollowUp, decide);
        let (receipt, index) = operating.await?;
        info!(
            namespace = %key.namespace, job_id = %key.job_id, task_group = asked.group,
            count = asked.count, index, "job scaled"
        );
        Ok(v1::ScaleJobResponse {
            eval_id: text(receipt.eval_id),
            eval_create_index: receipt.eval_id.map_or(0, |_| index),
            job_modify_index: receipt.job_index.unwrap_or(index),
            index,
        })
    }

    pub(super) async fn job_scale_status(
        &self,
        request: Request<v1::GetJobScaleStatusRequest>,
    ) -> Result<v1::GetJobScaleStatusResponse, Error> {
        let (request, timeout) = open(request);
        let read = Read::new(request.options, timeout);
        let key = read.job_key(&request.job_id)?;
        let index = |snapshot: &Snapshot| index::of_job(snapshot, &key);
        let answer = |snapshot: &Snapshot| {
            let job = find_job(snapshot, &key)?;
            Ok((api_view::scale_status(snapshot, &key, job), String::new()))
        };
        let (status, meta) = self.query(&read, &JOB_TABLES, index, answer).await?;
        Ok(v1::GetJobScaleStatusResponse { meta, ..status })
    }

    /// Decides on an operation of the job `key`, and commits it. One that adds work is refused while
    /// etcd is nearly full, unless it is committed already.
    async fn operate(
        &self,
        key: &JobKey,
        class: SizeClass,
        decide: impl Fn(&Snapshot, &RequestContext) -> Result<Outcome, JobRefusal> + Send + Sync,
    ) -> Result<Done, Error> {
        let gateway = &self.gateway;
        let _slot = gateway.begin_work()?;
        let context = self.request_context();
        let decide = |snapshot: &Snapshot| {
            let outcome = decide(snapshot, &context)?;
            Ok(Work {
                is_new: outcome.adds_work(),
                step: step(outcome),
            })
        };
        let what = || format!("job {key}");
        gateway.execute_work(class, what, decide).await
    }
}

pub(super) fn step(outcome: Outcome) -> Step<Done> {
    match outcome {
        // The child of a dispatch token may have been purged meanwhile.
        Outcome::Done { receipt, index } => Step::IfFresh((receipt, index)),
        Outcome::Commit {
            writes, receipt, ..
        } => Step::Commit {
            writes,
            answer: Box::new(move |revision| (receipt, revision)),
        },
    }
}

fn text(eval_id: Option<EvalId>) -> String {
    eval_id.map_or_else(String::new, |id| id.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A stale replica may still show a purged child of a dispatch token.
    #[test]
    fn a_repeated_operation_is_answered_from_fresh_state_only() {
        let receipt = Receipt {
            job_id: "report/dispatch-1".to_owned(),
            eval_id: None,
            job_index: None,
        };
        let done = Outcome::Done { receipt, index: 7 };
        assert!(matches!(step(done), Step::IfFresh((_, 7))));
    }
}
