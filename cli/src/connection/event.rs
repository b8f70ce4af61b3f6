//! Streaming RPCs.

use std::time::Duration;

use kafila_client::Opened;
use proto::v1;

use super::transport::Connection;
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
    ) -> Result<Opened<v1::EventBatch>, Error> {
        let message = v1::StreamEventsRequest {
            namespace: self.namespace().to_owned(),
            filters,
            index,
            bookmark_interval: Some(proto::duration_to_wire(BOOKMARKS)),
        };
        self.call(DOING, self.api().events().stream(message)).await
    }

    /// Returns the next batch; `None` at the end.
    pub(crate) async fn next_event(
        &self,
        stream: &mut Opened<v1::EventBatch>,
    ) -> Result<Option<v1::EventBatch>, Error> {
        // An idle stream carries bookmarks, so silence means a dead connection.
        let limit = BOOKMARKS + self.timeout();
        self.call_waiting(DOING, stream.next_within(limit)).await
    }
}
