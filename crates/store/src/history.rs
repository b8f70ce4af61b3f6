//! History: replays committed changes, revision by revision; for checkers, not for services.

use std::collections::VecDeque;
use std::time::Duration;

use state::Change;
use tokio::time::{Instant, timeout};

use crate::client::Client;
use crate::error::Error;
use crate::replica::Interest;
use crate::replica::decode::to_changes;
use crate::replica::metrics::ReplicaMetrics;
use crate::watch::{Message, PrefixWatch};

/// Wait before progress is requested again.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(50);

/// Every revision from a start to the newest at the time of the call.
#[derive(Debug)]
pub struct History {
    client: Client,
    watch: PrefixWatch,
    ready: VecDeque<(u64, Vec<Change>)>,
    /// The last revision to return.
    last: u64,
    done: bool,
}

impl History {
    /// Starts at `revision`; 1 is the very first.
    ///
    /// # Errors
    /// etcd cannot be reached.
    pub async fn from(client: &Client, revision: u64) -> Result<Self, Error> {
        let last = client.current_revision().await?;
        let watch = PrefixWatch::start(client, revision.max(1)).await?;
        let done = last < revision;
        Ok(Self {
            client: client.clone(),
            watch,
            ready: VecDeque::new(),
            last,
            done,
        })
    }

    /// Returns the next revision with changes below the prefix, and its changes; `None` at the end.
    ///
    /// # Errors
    /// The next changes were compacted, or the watch broke, or the store does not answer.
    pub async fn next(&mut self) -> Result<Option<(u64, Vec<Change>)>, Error> {
        loop {
            if let Some((revision, changes)) = self.ready.pop_front() {
                self.done |= revision >= self.last;
                return Ok((revision <= self.last).then_some((revision, changes)));
            }
            if self.done {
                return Ok(None);
            }
            let message = self.receive().await?;
            match message {
                Message::Revisions(revisions) => {
                    for (revision, events) in revisions {
                        let metrics = ReplicaMetrics::default();
                        let changes =
                            to_changes(&self.client.keyspace, events, &metrics, Interest::ALL);
                        self.ready.push_back((revision, changes));
                    }
                }
                Message::Progress(revision) => self.done |= revision >= self.last,
                Message::Nothing => {}
            }
        }
    }

    /// Returns the next message, requesting progress until there is one: etcd stays silent while a
    /// watch catches up, and without changes below the prefix there is no event.
    async fn receive(&mut self) -> Result<Message, Error> {
        let deadline = Instant::now() + self.client.request_timeout;
        while Instant::now() < deadline {
            self.watch.request_progress(PROGRESS_INTERVAL).await?;
            if let Ok(message) = timeout(PROGRESS_INTERVAL, self.watch.next()).await {
                return message;
            }
        }
        Err(Error::Unknown {
            doing: "replay history",
            source: None,
        })
    }
}
