//! What is asked about allocations.

use proto::v1;
use proto::v1::allocations_client::AllocationsClient;
use tonic::Streaming;

use super::{Connection, MAX_ANSWER_BYTES};
use crate::error::Error;

/// Which part of which output to read.
pub(crate) type LogsRequest = v1::LogsRequest;

fn client(channel: service_kit::TracedChannel) -> AllocationsClient<service_kit::TracedChannel> {
    AllocationsClient::new(channel).max_decoding_message_size(MAX_ANSWER_BYTES)
}

impl Connection {
    /// Lists the allocations whose id begins with `prefix`.
    pub(crate) async fn allocations(
        &self,
        prefix: &str,
        per_page: u32,
    ) -> Result<Vec<v1::Allocation>, Error> {
        let options = v1::QueryOptions {
            prefix: prefix.to_owned(),
            per_page,
            ..self.options(self.any_namespace())
        };
        let message = v1::ListAllocationsRequest {
            options: Some(options),
        };
        let answer: v1::ListAllocationsResponse = self
            .call(
                "querying allocations",
                message,
                |channel, request| async move { client(channel).list(request).await },
            )
            .await?;
        Ok(answer.allocations)
    }

    /// Lists every allocation of every namespace.
    pub(crate) async fn all_allocations(&self) -> Result<Vec<v1::Allocation>, Error> {
        let message = v1::ListAllocationsRequest {
            options: Some(self.options("*")),
        };
        let answer: v1::ListAllocationsResponse = self
            .call(
                "querying allocations",
                message,
                |channel, request| async move { client(channel).list(request).await },
            )
            .await?;
        Ok(answer.allocations)
    }

    /// Opens the stream of a task's output. The deadline is for its beginning.
    pub(crate) async fn logs(
        &self,
        message: LogsRequest,
    ) -> Result<Streaming<v1::LogsChunk>, Error> {
        let doing = format!("reading logs of task {:?}", message.task);
        self.call(&doing, message, |channel, request| async move {
            client(channel).logs(request).await
        })
        .await
    }

    /// Says what went wrong with a stream that had begun.
    pub(crate) fn logs_error(&self, task: &str, status: tonic::Status) -> Error {
        self.error(&format!("reading logs of task {task:?}"), status)
    }
}
