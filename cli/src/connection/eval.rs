//! What is asked about evaluations.

use proto::v1;
use proto::v1::evaluations_client::EvaluationsClient;

use super::{Blocking, Connection, MAX_ANSWER_BYTES};
use crate::error::Error;

fn client(channel: service_kit::TracedChannel) -> EvaluationsClient<service_kit::TracedChannel> {
    EvaluationsClient::new(channel).max_decoding_message_size(MAX_ANSWER_BYTES)
}

impl Connection {
    /// Lists evaluations, and says where the next page begins.
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
                message,
                |channel, request| async move { client(channel).list(request).await },
            )
            .await?;
        let next_token = answer.meta.unwrap_or_default().next_token;
        Ok((answer.evaluations, next_token))
    }

    /// Returns an evaluation once it is newer than `blocking.after`, or `blocking.wait` is over,
    /// with the index it was read at.
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
            .call_within(
                &doing,
                message,
                blocking.wait,
                |channel, request| async move { client(channel).get(request).await },
            )
            .await?;
        let index = answer.meta.unwrap_or_default().index;
        Ok((answer.evaluation.unwrap_or_default(), index))
    }

    /// Returns an evaluation as it is now, and what nodes say of it; `node_id` is one that is told
    /// of in any case, or empty.
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
            .call(&doing, message, |channel, request| async move {
                client(channel).explain(request).await
            })
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
            .call(&doing, message, |channel, request| async move {
                client(channel).list_allocations(request).await
            })
            .await?;
        Ok(answer.allocations)
    }
    /// Deletes evaluations, all of them or none; returns how many. Asked once only: a second time
    /// they would not be found.
    pub(crate) async fn delete_evaluations(&self, eval_ids: Vec<String>) -> Result<u32, Error> {
        let message = v1::DeleteEvaluationsRequest { eval_ids };
        let doing = "deleting evaluations";
        let answer: v1::DeleteEvaluationsResponse = self
            .call(doing, message, |channel, request| async move {
                client(channel).delete(request).await
            })
            .await?;
        Ok(answer.count)
    }
}
