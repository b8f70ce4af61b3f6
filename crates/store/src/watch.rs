//! One watch on everything below the prefix, delivered in whole revisions.
//!
//! One watch covers all kinds of keys: etcd sends the events of one revision together, so each
//! delivery leads to a state that the store was in. (With one stream per kind, revisions would have
//! to be reassembled with progress notifications.) Requests allow fragments, because one
//! transaction may be larger than one message.

use std::sync::Arc;
use std::time::Duration;

use etcd_client::proto::PbEvent;
use etcd_client::{WatchOptions, WatchResponse, WatchStream};
use tokio::time::timeout;
use tokio_stream::StreamExt as _;

use crate::client::Client;
use crate::error::{Cause, Error};
use crate::revision;

/// One message of the watch.
#[derive(Debug)]
pub(crate) enum Message {
    /// Whole revisions in order, each with all of its events.
    Revisions(Vec<(u64, Vec<PbEvent>)>),
    /// No changes after the delivered ones, up to this revision.
    Progress(u64),
    /// A fragment of a message, or an acknowledgement.
    Nothing,
}

/// One watch on everything below the prefix.
#[derive(Debug)]
pub(crate) struct PrefixWatch {
    stream: WatchStream,
    /// The members' addresses, for error texts.
    endpoints: Arc<[String]>,
    /// Events of an incomplete message.
    fragments: Vec<PbEvent>,
    /// The newest revision in the server's messages.
    pub(crate) newest: u64,
}

impl PrefixWatch {
    /// Starts watching from `revision` on, which may be in the past.
    pub(crate) async fn start(client: &Client, revision: u64) -> Result<Self, Error> {
        Self::start_with(client, options(revision)).await
    }

    /// As [`Self::start`]; every event has the previous value, unless that is compacted.
    pub(crate) async fn start_with_previous(client: &Client, revision: u64) -> Result<Self, Error> {
        Self::start_with(client, options(revision).with_prev_key()).await
    }

    async fn start_with(client: &Client, options: WatchOptions) -> Result<Self, Error> {
        let mut watch = client.watch.clone();
        let opened = watch.watch(client.keyspace.prefix(), Some(options));
        let stream = within(client.request_timeout, &client.endpoints, opened).await?;
        Ok(Self {
            stream,
            endpoints: Arc::clone(&client.endpoints),
            fragments: Vec::new(),
            newest: 0,
        })
    }

    /// Requests the progress of the watch.
    pub(crate) async fn request_progress(&mut self, timeout: Duration) -> Result<(), Error> {
        within(timeout, &self.endpoints, self.stream.request_progress()).await
    }

    /// Returns the next message. Dropping the future loses nothing.
    ///
    /// # Errors
    /// [`Error::Compacted`] when the next changes are no longer kept; [`Error::WatchEnded`] otherwise.
    pub(crate) async fn next(&mut self) -> Result<Message, Error> {
        match self.stream.next().await {
            Some(Ok(response)) => self.read(response),
            Some(Err(error)) => Err(Error::WatchEnded {
                reason: Cause::from(error).to_string(),
            }),
            None => Err(Error::WatchEnded {
                reason: "the stream was closed".to_owned(),
            }),
        }
    }

    fn read(&mut self, response: WatchResponse) -> Result<Message, Error> {
        let mut response = response.0;
        if response.compact_revision > 0 {
            let revision = revision::from_etcd(response.compact_revision);
            return Err(Error::Compacted { revision });
        }
        if response.canceled {
            return Err(Error::WatchEnded {
                reason: response.cancel_reason,
            });
        }
        let header = response
            .header
            .map_or(0, |header| revision::from_etcd(header.revision));
        self.newest = self.newest.max(header);
        self.fragments.append(&mut response.events);
        if response.fragment || response.created {
            return Ok(Message::Nothing);
        }
        if self.fragments.is_empty() {
            return Ok(Message::Progress(header));
        }
        Ok(Message::Revisions(by_revision(std::mem::take(
            &mut self.fragments,
        ))))
    }
}

fn options(revision: u64) -> WatchOptions {
    WatchOptions::new()
        .with_prefix()
        .with_start_revision(revision::to_etcd(revision))
        .with_fragment()
        .with_progress_notify()
}

/// Groups events, which are in order, by revision.
fn by_revision(events: Vec<PbEvent>) -> Vec<(u64, Vec<PbEvent>)> {
    let mut revisions = Vec::<(u64, Vec<PbEvent>)>::new();
    for event in events {
        let changed = event
            .kv
            .as_ref()
            .map_or(0, |kv| revision::from_etcd(kv.mod_revision));
        match revisions.last_mut() {
            Some((revision, events)) if *revision == changed => events.push(event),
            _ => revisions.push((changed, vec![event])),
        }
    }
    revisions
}

async fn within<T>(
    limit: Duration,
    endpoints: &[String],
    request: impl Future<Output = Result<T, etcd_client::Error>>,
) -> Result<T, Error> {
    match timeout(limit, request).await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(source)) => Err(Error::from_etcd("watch", endpoints, source)),
        Err(_) => Err(Error::Unknown {
            doing: "watch",
            source: None,
        }),
    }
}
