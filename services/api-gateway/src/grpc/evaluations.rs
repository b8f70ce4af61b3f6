//! `kafila.v1.Evaluations`.

use std::collections::BTreeSet;
use std::sync::Arc;

use admission::cluster::evaluations;
use gateway_core::{Error, Step};
use listing::{find, whole_ids};
use model::{EvalId, EvalStatus, Evaluation, FieldErrors, Indexed};
use proto::v1;
use proto::v1::evaluations_server::Evaluations;
use state::{Snapshot, Table};
use tonic::{Request, Response, Status};
use tracing::info;

use super::allocations::page_of_allocs;
use super::query::{Api, List, Read, open, reply};

const TABLES: [Table; 1] = [Table::Evals];

#[tonic::async_trait]
impl Evaluations for Api {
    async fn get(
        &self,
        request: Request<v1::GetEvaluationRequest>,
    ) -> Result<Response<v1::GetEvaluationResponse>, Status> {
        let (request, timeout) = open(request);
        let read = Read::new(request.options, timeout);
        let find = |snapshot: &Snapshot| {
            let id = find::eval(snapshot, &request.eval_id)?;
            Ok(snapshot.eval(id).expect("found in this snapshot").clone())
        };
        let index = |_: &Snapshot, eval: &Arc<Indexed<Evaluation>>| eval.modify_index;
        let show = |_: &Snapshot, eval: &Arc<Indexed<Evaluation>>| v1::Evaluation::from(&**eval);
        let (evaluation, meta) = Api::get(self, &read, &TABLES, find, index, show).await?;
        Ok(Response::new(v1::GetEvaluationResponse {
            meta,
            evaluation: Some(evaluation),
        }))
    }

    async fn list(
        &self,
        request: Request<v1::ListEvaluationsRequest>,
    ) -> Result<Response<v1::ListEvaluationsResponse>, Status> {
        let (request, timeout) = open(request);
        let status = eval_status(&request.status).map_err(Error::from)?;
        let list = List::new(request.options, timeout)?.by_id()?.reversible();
        let answer = |snapshot: &Snapshot| {
            let evals = snapshot.evals().filter(|eval| {
                let eval = &eval.value;
                list.has_namespace(&eval.job.namespace)
                    && (request.job_id.is_empty() || *eval.job.job_id == *request.job_id)
                    && status.is_none_or(|status| eval.status == status)
                    && list.has_id(eval.id.0)
            });
            Ok(page_of_evals(&list, evals))
        };
        let (evaluations, meta) = Api::list(self, &list, &TABLES, answer).await?;
        Ok(Response::new(v1::ListEvaluationsResponse {
            meta,
            evaluations,
        }))
    }

    async fn explain(
        &self,
        request: Request<v1::ExplainEvaluationRequest>,
    ) -> Result<Response<v1::ExplainEvaluationResponse>, Status> {
        let (request, timeout) = open(request);
        reply(Box::pin(self.explain_evaluation(request, timeout)).await)
    }

    async fn list_allocations(
        &self,
        request: Request<v1::ListEvaluationAllocationsRequest>,
    ) -> Result<Response<v1::ListAllocationsResponse>, Status> {
        let (request, timeout) = open(request);
        let list = List::new(request.options, timeout)?.reversible();
        let answer = |snapshot: &Snapshot| {
            let id = find::eval(snapshot, &request.eval_id)?;
            Ok(page_of_allocs(snapshot, &list, snapshot.allocs_by_eval(id)))
        };
        let (allocations, meta) = Api::list(self, &list, &[Table::Allocs], answer).await?;
        Ok(Response::new(v1::ListAllocationsResponse {
            meta,
            allocations,
        }))
    }

    async fn delete(
        &self,
        request: Request<v1::DeleteEvaluationsRequest>,
    ) -> Result<Response<v1::DeleteEvaluationsResponse>, Status> {
        reply(Box::pin(self.delete_evaluations(request.into_inner())).await)
    }
}

impl Api {
    async fn delete_evaluations(
        &self,
        request: v1::DeleteEvaluationsRequest,
    ) -> Result<v1::DeleteEvaluationsResponse, Error> {
        let ids: Vec<EvalId> = whole_ids("eval_ids", &request.eval_ids)?;
        let ids = BTreeSet::from_iter(ids);
        let decide = |snapshot: &Snapshot| {
            Ok(Step::Commit {
                writes: evaluations::delete(snapshot, &ids)?,
                answer: Box::new(|revision| revision),
            })
        };
        let what = || "evaluations".to_owned();
        let index = self.gateway.core.execute(what, decide).await?;
        let count = ids.len();
        info!(count, index, "evaluations deleted");
        Ok(v1::DeleteEvaluationsResponse {
            count: u32::try_from(count).unwrap_or(u32::MAX),
            index,
        })
    }
}

/// Returns a page of evaluations, ordered by create index and id.
pub(super) fn page_of_evals<'s>(
    list: &List<(u64, EvalId)>,
    evals: impl Iterator<Item = &'s Arc<Indexed<Evaluation>>>,
) -> (Vec<v1::Evaluation>, String) {
    let keyed = evals.map(|eval| ((eval.create_index, eval.value.id), eval));
    list.page(keyed, |eval| (&**eval).into())
}

/// Parses the status filter of evaluations; empty: any.
fn eval_status(text: &str) -> Result<Option<EvalStatus>, FieldErrors> {
    if text.is_empty() {
        return Ok(None);
    }
    let found = EvalStatus::ALL
        .into_iter()
        .find(|status| status.as_str() == text);
    found.map(Some).ok_or_else(|| {
        let known: Vec<&str> = EvalStatus::ALL
            .iter()
            .map(|status| status.as_str())
            .collect();
        let mut errors = FieldErrors::default();
        errors.push(
            "status",
            format!(
                "{text:?} is not a status of an evaluation: want one of {}, or none for any",
                known.join(", ")
            ),
        );
        errors
    })
}
