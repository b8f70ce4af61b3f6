//! Streaming RPCs.

use std::time::Duration;

use proto::v1;
use proto::v1::events_client::EventsClient;
use tonic::Streaming;

use super::transport::{Connection, MAX_ANSWER_BYTES};
use crate::error::Error;

const DOING: &str = "reading events";

/// Interval of the bookmarks that show that the stream is alive.
const BOOKMARKS: Duration = Duration::from_secs(5);

impl Connection {
    /// Opens the stream of events from `index` on; 0: only new events. It has no deadline.
    pub(crate) async fn events(
        &self,
        filters: Vec<v1::EventFilter>,
        index: u64,
    ) -> Result<Streaming<v1::EventBatch>, Error> {
        let message = v1::StreamEventsRequest {
            namespace: self.namespace().to_owned(),
            filters,
            index,
            bookmark_interval: Some(proto::duration_to_wire(BOOKMARKS)),
        };
        let mut client =
            EventsClient::new(self.channel()).max_decoding_message_size(MAX_ANSWER_BYTES);
        let opening = tokio::time::timeout(self.timeout(), client.stream(message));
        match opening.await {
            Ok(Ok(stream)) => Ok(stream.into_inner()),
            Ok(Err(status)) => Err(self.error(DOING, status)),
            Err(_) => Err(self.event_silence()),
        }
    }

    /// Returns the next batch; `None` at the end.
    pub(crate) async fn next_event(
        &self,
        stream: &mut Streaming<v1::EventBatch>,
    ) -> Result<Option<v1::EventBatch>, Error> {
        // An idle stream carries bookmarks, so silence means a dead connection.
        match tokio::time::timeout(BOOKMARKS + self.timeout(), stream.message()).await {
            Ok(batch) => batch.map_err(|status| self.error(DOING, status)),
            Err(_) => Err(self.event_silence()),
        }
    }

    fn event_silence(&self) -> Error {
        self.error(
            DOING,
            tonic::Status::deadline_exceeded("no event or bookmark arrived"),
        )
    }
}
