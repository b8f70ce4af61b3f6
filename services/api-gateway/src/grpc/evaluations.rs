//! `kafila.v1.Evaluations`.

use std::collections::BTreeSet;

use model::{EvalId, FieldErrors};
use proto::v1;
use proto::v1::evaluations_server::Evaluations;
use state::{Snapshot, Table};
use tonic::{Request, Response, Status};
use tracing::info;

use super::jobs::eval_status;
use super::{Api, open};
use crate::error::Error;
use crate::gateway::Step;
use crate::reads::options::{namespaces, uuid_prefix};
use crate::reads::page::Page;
use crate::reads::{index, prefix, view};
use crate::settings::evaluations;

const TABLES: [Table; 1] = [Table::Evals];

#[tonic::async_trait]
impl Evaluations for Api {
    async fn get(
        &self,
        request: Request<v1::GetEvaluationRequest>,
    ) -> Result<Response<v1::GetEvaluationResponse>, Status> {
        let (request, timeout) = open(request);
        let options = request.options.unwrap_or_default();
        let index = |snapshot: &Snapshot| {
            let eval = find(snapshot, &request.eval_id)
                .ok()
                .and_then(|id| snapshot.eval(id));
            eval.map_or_else(
                || index::of_tables(snapshot, &TABLES),
                |eval| eval.modify_index,
            )
        };
        let answer = |snapshot: &Snapshot| {
            let id = find(snapshot, &request.eval_id)?;
            let eval = snapshot.eval(id).expect("found in this very snapshot");
            Ok((v1::Evaluation::from(&**eval), String::new()))
        };
        let (evaluation, meta) = self.ask(&options, timeout, &TABLES, index, answer).await?;
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
        let options = request.options.unwrap_or_default();
        let namespaces = namespaces(&options);
        let status = eval_status(&request.status).map_err(Error::from)?;
        let prefix = uuid_prefix(&options).map_err(Error::from)?;
        let page = Page::<(u64, EvalId)>::new(options.per_page, &options.next_token)
            .map_err(Error::from)?
            .reversed(options.reverse);
        let index = |snapshot: &Snapshot| index::of_tables(snapshot, &TABLES);
        let answer = |snapshot: &Snapshot| {
            let evals = snapshot.evals().filter(|eval| {
                let eval = &eval.value;
                namespaces.contain(&eval.job.namespace)
                    && (request.job_id.is_empty() || *eval.job.job_id == *request.job_id)
                    && status.is_none_or(|status| eval.status == status)
                    && prefix.is_none_or(|prefix| prefix.matches(eval.id.0))
            });
            let keyed = evals.map(|eval| ((eval.create_index, eval.value.id), eval));
            let (evals, token) = page.of(keyed);
            Ok((
                evals.into_iter().map(|eval| (&**eval).into()).collect(),
                token,
            ))
        };
        let (evaluations, meta) = self.ask(&options, timeout, &TABLES, index, answer).await?;
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
        let response = Box::pin(self.explain_evaluation(request, timeout)).await?;
        Ok(Response::new(response))
    }

    async fn list_allocations(
        &self,
        request: Request<v1::ListEvaluationAllocationsRequest>,
    ) -> Result<Response<v1::ListAllocationsResponse>, Status> {
        let (request, timeout) = open(request);
        let options = request.options.unwrap_or_default();
        let page = Page::new(options.per_page, &options.next_token)
            .map_err(Error::from)?
            .reversed(options.reverse);
        let tables = [Table::Allocs];
        let index = |snapshot: &Snapshot| index::of_tables(snapshot, &tables);
        let answer = |snapshot: &Snapshot| {
            let id = find(snapshot, &request.eval_id)?;
            let allocs = snapshot.allocs_by_eval(id);
            let (allocs, token) =
                page.of(allocs.map(|view| ((view.create_index, view.alloc.id), view)));
            let allocs = allocs
                .into_iter()
                .map(|alloc| view::allocation(snapshot, alloc));
            Ok((allocs.collect(), token))
        };
        let (allocations, meta) = self.ask(&options, timeout, &tables, index, answer).await?;
        Ok(Response::new(v1::ListAllocationsResponse {
            meta,
            allocations,
        }))
    }

    async fn delete(
        &self,
        request: Request<v1::DeleteEvaluationsRequest>,
    ) -> Result<Response<v1::DeleteEvaluationsResponse>, Status> {
        let response = Box::pin(self.delete_evaluations(request.into_inner())).await?;
        Ok(Response::new(response))
    }
}

impl Api {
    async fn delete_evaluations(
        &self,
        request: v1::DeleteEvaluationsRequest,
    ) -> Result<v1::DeleteEvaluationsResponse, Error> {
        let mut errors = FieldErrors::default();
        let mut ids = BTreeSet::new();
        for (position, text) in request.eval_ids.iter().enumerate() {
            match text.parse::<EvalId>() {
                Ok(id) => drop(ids.insert(id)),
                Err(_) => errors.push(
                    format!("eval_ids[{position}]"),
                    format!("{text:?} is no evaluation's id: want all 36 characters"),
                ),
            }
        }
        errors.into_result(())?;
        let decide = |snapshot: &Snapshot| {
            Ok(Step::Commit {
                writes: evaluations::delete(snapshot, &ids)?,
                answer: Box::new(|revision| revision),
            })
        };
        let what = || "evaluations".to_owned();
        let index = self.gateway.carry_out(what, decide).await?;
        let count = ids.len();
        info!(count, index, "evaluations deleted");
        Ok(v1::DeleteEvaluationsResponse {
            count: u32::try_from(count).unwrap_or(u32::MAX),
            index,
        })
    }
}

pub(super) fn find(snapshot: &Snapshot, text: &str) -> Result<EvalId, prefix::NotFound> {
    let exists = |id| snapshot.eval(id).is_some();
    let all = snapshot
        .evals()
        .map(|eval| (eval.value.id.0, eval.value.id));
    prefix::find("eval_id", "evaluation", text, EvalId, exists, all)
}
