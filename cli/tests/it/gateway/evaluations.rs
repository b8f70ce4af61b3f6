//! Evaluation RPCs of the fake gateway.

use proto::v1::evaluations_server::Evaluations;
use proto::v1::*;
use tonic::{Request, Response, Status};

use super::fake::{Answer, Fake, block, lists_id, meta, page};

#[tonic::async_trait]
impl Evaluations for Fake {
    async fn delete(
        &self,
        request: Request<DeleteEvaluationsRequest>,
    ) -> Answer<DeleteEvaluationsResponse> {
        self.seen("DeleteEvaluations", &request, None).await?;
        let ids = request.into_inner().eval_ids;
        let mut state = self.state();
        state.evals.retain(|eval| !ids.contains(&eval.id));
        let count = u32::try_from(ids.len()).unwrap();
        state.deleted_evals.extend(ids);
        Ok(Response::new(DeleteEvaluationsResponse {
            count,
            index: 101,
        }))
    }

    async fn get(&self, request: Request<GetEvaluationRequest>) -> Answer<GetEvaluationResponse> {
        let options = request.get_ref().options.clone();
        self.seen("GetEvaluation", &request, options.as_ref())
            .await?;
        let id = request.into_inner().eval_id;
        let (evaluation, index) = {
            let mut state = self.state();
            if let Some(next) = state.next_evals.pop_front() {
                state.evals.retain(|eval| eval.id != next.id);
                state.evals.push(next);
            }
            let found = state.evals.iter().find(|eval| eval.id == id).cloned();
            let Some(found) = found else {
                return Err(Status::not_found(format!("there is no evaluation {id}")));
            };
            let index = found.modify_index;
            (found, index)
        };
        block(options.as_ref(), index).await;
        Ok(Response::new(GetEvaluationResponse {
            meta: Some(meta(index)),
            evaluation: Some(evaluation),
        }))
    }

    async fn list(
        &self,
        request: Request<ListEvaluationsRequest>,
    ) -> Answer<ListEvaluationsResponse> {
        let options = request.get_ref().options.clone();
        self.seen("ListEvaluations", &request, options.as_ref())
            .await?;
        let message = request.into_inner();
        self.state().asked_jobs.push(message.job_id.clone());
        let mut evals = self.state().evals.clone();
        evals.retain(|eval| {
            lists_id(options.as_ref(), &eval.namespace, &eval.id)
                && (message.status.is_empty() || eval.status == message.status)
                && (message.job_id.is_empty() || eval.job_id == message.job_id)
        });
        let (evaluations, meta) = page(evals, options.as_ref());
        Ok(Response::new(ListEvaluationsResponse { meta, evaluations }))
    }

    async fn explain(
        &self,
        request: Request<ExplainEvaluationRequest>,
    ) -> Answer<ExplainEvaluationResponse> {
        let options = request.get_ref().options.clone();
        self.seen("ExplainEvaluation", &request, options.as_ref())
            .await?;
        let request = request.into_inner();
        let mut state = self.state();
        let evaluation = state.evals.iter().find(|eval| eval.id == request.eval_id);
        let evaluation = evaluation.cloned();
        state.explain_requests.push(request);
        Ok(Response::new(ExplainEvaluationResponse {
            meta: Some(meta(131)),
            evaluation,
            explanation: Some(crate::fixtures::explanation()),
        }))
    }

    async fn list_allocations(
        &self,
        request: Request<ListEvaluationAllocationsRequest>,
    ) -> Answer<ListAllocationsResponse> {
        let options = request.get_ref().options.clone();
        self.seen("ListEvaluationAllocations", &request, options.as_ref())
            .await?;
        let id = request.into_inner().eval_id;
        let mut allocations = self.state().allocs.clone();
        allocations.retain(|alloc| alloc.eval_id == id && alloc.desired_status == "run");
        Ok(Response::new(ListAllocationsResponse {
            meta: Some(meta(100)),
            allocations,
        }))
    }
}
