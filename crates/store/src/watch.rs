//! Watches everything below the prefix and hands it out in whole revisions.
//!
//! One watch for all kinds of keys: etcd sends the events of one revision together, so what is
//! handed out is always a state that the store was in. (One stream per kind would have to be put
//! back together by progress notices.) Requests ask for fragments, because one transaction may be
//! larger than one message.

use std::sync::Arc;
use std::time::Duration;

use etcd_client::proto::PbEvent;
use etcd_client::{WatchOptions, WatchResponse, WatchStream};
use tokio::time::timeout;
use tokio_stream::StreamExt as _;

use crate::client::Client;
use crate::error::{Cause, Error};
use crate::revision;

/// What the stream brought.
#[derive(Debug)]
pub(crate) enum Message {
    /// Whole revisions in order, each with everything it changed.
    Revisions(Vec<(u64, Vec<PbEvent>)>),
    /// Nothing changed after what was handed out, up to this revision.
    Progress(u64),
    /// A part of something larger, or a formality.
    Nothing,
}

/// One watch on everything below the prefix.
#[derive(Debug)]
pub(crate) struct PrefixWatch {
    stream: WatchStream,
    /// Whose watch it is.
    endpoints: Arc<[String]>,
    /// Events of a message that is not complete yet.
    fragments: Vec<PbEvent>,
    /// The newest revision that the server has mentioned.
    pub(crate) heard: u64,
}

impl PrefixWatch {
    /// Starts watching from `revision` on, which may be in the past.
    pub(crate) async fn start(client: &Client, revision: u64) -> Result<Self, Error> {
        Self::start_with(client, options(revision)).await
    }

    /// As [`Self::start`]; every event brings along what was there before, unless that has been
    /// compacted away.
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
            heard: 0,
        })
    }

    /// Asks the server to say how far the watch has come.
    pub(crate) async fn request_progress(&mut self, patience: Duration) -> Result<(), Error> {
        within(patience, &self.endpoints, self.stream.request_progress()).await
    }

    /// Returns what comes next. Dropping the future loses nothing.
    ///
    /// # Errors
    /// [`Error::Compacted`] when what follows is no longer kept; [`Error::WatchEnded`] otherwise.
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
        self.heard = self.heard.max(header);
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

/// Splits events, which are in order, where their revision changes.
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
    patience: Duration,
    endpoints: &[String],
    request: impl Future<Output = Result<T, etcd_client::Error>>,
) -> Result<T, Error> {
    match timeout(patience, request).await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(source)) => Err(Error::from_etcd("watch", endpoints, source)),
        Err(_) => Err(Error::Unknown {
            doing: "watch",
            source: None,
        }),
    }
}
