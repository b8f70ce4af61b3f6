//! RPCs on evaluations.

use proto::v1;

use super::transport::{Blocking, Connection};
use crate::error::Error;

impl Connection {
    /// Lists evaluations, with the token of the next page.
    pub(crate) async fn evaluations(
        &self,
        options: v1::QueryOptions,
        status: &str,
        job_id: &str,
    ) -> Result<(Vec<v1::Evaluation>, String), Error> {
        let message = v1::ListEvaluationsRequest {
            options: Some(options),
            status: status.to_owned(),
            job_id: job_id.to_owned(),
        };
        let answer: v1::ListEvaluationsResponse = self
            .call(
                "querying evaluations",
                self.api().evaluations().list(message),
            )
            .await?;
        let next_token = answer.meta.unwrap_or_default().next_token;
        Ok((answer.evaluations, next_token))
    }

    /// Returns an evaluation and the index of the read, once it is newer than `blocking.after` or
    /// `blocking.wait` has passed.
    pub(crate) async fn evaluation(
        &self,
        namespace: &str,
        eval_id: &str,
        blocking: Blocking,
    ) -> Result<(v1::Evaluation, u64), Error> {
        let message = v1::GetEvaluationRequest {
            options: Some(self.blocking_options(namespace, blocking)),
            eval_id: eval_id.to_owned(),
        };
        let doing = format!("reading evaluation {eval_id:?}");
        let answer: v1::GetEvaluationResponse = self
            .call_waiting(
                &doing,
                self.api()
                    .evaluations()
                    .get(message)
                    .blocking(blocking.after, blocking.wait),
            )
            .await?;
        let index = answer.meta.unwrap_or_default().index;
        Ok((answer.evaluation.unwrap_or_default(), index))
    }

    /// Returns an evaluation with its explanation; `node_id` is a node to include, or empty.
    pub(crate) async fn explain_evaluation(
        &self,
        namespace: &str,
        eval_id: &str,
        node_id: &str,
    ) -> Result<(v1::Evaluation, v1::Explanation), Error> {
        let message = v1::ExplainEvaluationRequest {
            options: Some(self.options(namespace)),
            eval_id: eval_id.to_owned(),
            node_id: node_id.to_owned(),
        };
        let doing = format!("explaining evaluation {eval_id:?}");
        let answer: v1::ExplainEvaluationResponse = self
            .call(&doing, self.api().evaluations().explain(message))
            .await?;
        let eval = answer.evaluation.unwrap_or_default();
        Ok((eval, answer.explanation.unwrap_or_default()))
    }

    pub(crate) async fn evaluation_allocations(
        &self,
        namespace: &str,
        eval_id: &str,
    ) -> Result<Vec<v1::Allocation>, Error> {
        let message = v1::ListEvaluationAllocationsRequest {
            options: Some(self.options(namespace)),
            eval_id: eval_id.to_owned(),
        };
        let doing = format!("reading allocations of evaluation {eval_id:?}");
        let answer: v1::ListAllocationsResponse = self
            .call(&doing, self.api().evaluations().list_allocations(message))
            .await?;
        Ok(answer.allocations)
    }

    /// Deletes all of the evaluations or none; returns their number. Not idempotent: a retry would
    /// not find them.
    pub(crate) async fn delete_evaluations(&self, eval_ids: Vec<String>) -> Result<u32, Error> {
        let message = v1::DeleteEvaluationsRequest { eval_ids };
        let doing = "deleting evaluations";
        let answer: v1::DeleteEvaluationsResponse = self
            .call(doing, self.api().evaluations().delete(message))
            .await?;
        Ok(answer.count)
    }
}
