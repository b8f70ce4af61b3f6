//! `kafila.v1.Events`.

use std::time::Duration;

use event_stream::Filter;
use futures::StreamExt as _;
use gateway_core::Error;
use proto::status;
use proto::v1;
use proto::v1::events_server::Events;
use tonic::{Request, Response, Status};
use tracing::debug;

use super::query::{Api, Parts};
use crate::events::stream::{self, StreamRequest};

#[tonic::async_trait]
impl Events for Api {
    type StreamStream = Parts<v1::EventBatch>;

    async fn stream(
        &self,
        request: Request<v1::StreamEventsRequest>,
    ) -> Result<Response<Self::StreamStream>, Status> {
        let request = request.into_inner();
        let filter = Filter::read(request.namespace, request.filters).map_err(status::invalid)?;
        let interval = request.bookmark_interval.map(Duration::try_from);
        let bookmark_interval = interval.transpose().map_err(|_| {
            status::invalid_field("bookmark_interval", "want a duration that is not negative")
        })?;
        let index = request.index;
        let request = StreamRequest {
            filter,
            index,
            bookmark_interval,
        };
        let batches = Box::pin(stream::open(self.gateway.clone(), request)).await?;
        let batches = batches.map(|batch| {
            batch.map_err(|error: Error| {
                debug!(error = error.message(), "an event stream ends");
                Status::from(error)
            })
        });
        Ok(Response::new(Box::pin(batches)))
    }
}
