//! Change stream: committed changes, revision by revision, from a revision that etcd still keeps.
//!
//! Nothing is buffered: changes that were not read yet stay in etcd until they are compacted. For
//! readers that need each change; a [`crate::Replica`] has the state.

use std::collections::VecDeque;
use std::time::Duration;

use etcd_client::proto::PbEvent;
use futures::future::BoxFuture;
use state::{Change, Entity, Key};

use crate::client::Client;
use crate::codec;
use crate::error::Error;
use crate::keys::Keyspace;
use crate::replica::Interest;
use crate::replica::decode::to_changes;
use crate::replica::metrics::ReplicaMetrics;
use crate::watch::{Message, PrefixWatch};

/// All changes from one revision on.
#[derive(Debug)]
pub struct ChangeStream {
    keyspace: Keyspace,
    watch: PrefixWatch,
    ready: VecDeque<RevisionChanges>,
}

/// The changes of one revision.
#[derive(Clone, Debug, PartialEq)]
pub struct RevisionChanges {
    pub revision: u64,
    pub changes: Vec<Change>,
    /// The previous values of the changed nodes, except those that are compacted away.
    pub nodes_before: Vec<model::Node>,
}

/// One item of the stream.
#[derive(Clone, Debug, PartialEq)]
pub enum StreamItem {
    Changes(RevisionChanges),
    /// There are no changes between the previous item and this revision.
    Progress(u64),
}

impl ChangeStream {
    /// Starts at `revision`, which may be the next one to be written.
    ///
    /// # Errors
    /// etcd cannot be reached.
    pub fn from(client: &Client, revision: u64) -> BoxFuture<'_, Result<Self, Error>> {
        // Boxed here and below: the etcd client is compiled in this crate and not in every service.
        Box::pin(Self::start(client, revision))
    }

    async fn start(client: &Client, revision: u64) -> Result<Self, Error> {
        Ok(Self {
            keyspace: client.keyspace().clone(),
            watch: PrefixWatch::start_with_previous(client, revision).await?,
            ready: VecDeque::new(),
        })
    }

    /// Asks etcd for the progress of the watch. The answer is a [`StreamItem::Progress`], unless
    /// changes are outstanding.
    ///
    /// # Errors
    /// The request could not be sent within `timeout`.
    pub async fn request_progress(&mut self, timeout: Duration) -> Result<(), Error> {
        self.watch.request_progress(timeout).await
    }

    /// Returns the next item. Dropping the future loses nothing.
    ///
    /// # Errors
    /// [`Error::Compacted`] when the next changes are no longer kept; [`Error::WatchEnded`] otherwise.
    pub async fn next(&mut self) -> Result<StreamItem, Error> {
        self.next_boxed().await
    }

    fn next_boxed(&mut self) -> BoxFuture<'_, Result<StreamItem, Error>> {
        Box::pin(self.next_item())
    }

    async fn next_item(&mut self) -> Result<StreamItem, Error> {
        loop {
            if let Some(changes) = self.ready.pop_front() {
                return Ok(StreamItem::Changes(changes));
            }
            match self.watch.next().await? {
                Message::Revisions(revisions) => {
                    for (revision, events) in revisions {
                        self.ready.push_back(self.read(revision, events));
                    }
                }
                Message::Progress(revision) => return Ok(StreamItem::Progress(revision)),
                Message::Nothing => {}
            }
        }
    }

    fn read(&self, revision: u64, events: Vec<PbEvent>) -> RevisionChanges {
        let before = events.iter().filter_map(|event| {
            let kv = event.prev_kv.as_ref()?;
            let key = self.keyspace.decode(&kv.key).ok()?;
            matches!(key, Key::Node(_)).then_some(())?;
            match codec::decode(&key, &kv.value).ok()? {
                Entity::Node(node) => Some(*node),
                _ => None,
            }
        });
        let nodes_before = before.collect();
        RevisionChanges {
            revision,
            changes: to_changes(
                &self.keyspace,
                events,
                &ReplicaMetrics::default(),
                Interest::ALL,
            ),
            nodes_before,
        }
    }
}
