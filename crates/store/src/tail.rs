//! Follows what is committed, revision by revision, from one on that the store still keeps.
//!
//! Nothing is buffered: what is not asked for stays with etcd, which keeps it until it is
//! compacted away. For those who want each write; a [`crate::Replica`] has the state.

use std::collections::VecDeque;
use std::time::Duration;

use etcd_client::proto::PbEvent;
use state::{Change, Entity, Key};

use crate::client::Client;
use crate::codec;
use crate::error::Error;
use crate::keys::Keyspace;
use crate::replica::{ReplicaMetrics, to_changes};
use crate::watch::{Message, PrefixWatch};

/// Everything from one revision on.
#[derive(Debug)]
pub struct Tail {
    keyspace: Keyspace,
    watch: PrefixWatch,
    ready: VecDeque<Written>,
}

/// What one revision changed.
#[derive(Clone, Debug, PartialEq)]
pub struct Written {
    pub revision: u64,
    pub changes: Vec<Change>,
    /// The nodes among them as they were before; those of a revision that is compacted away are
    /// missing.
    pub nodes_before: Vec<model::Node>,
}

/// What comes next.
#[derive(Clone, Debug, PartialEq)]
pub enum Told {
    Written(Written),
    /// Nothing of ours was written after what was told, up to this revision.
    Quiet(u64),
}

impl Tail {
    /// Starts at `revision`, which may be the next one to be written.
    ///
    /// # Errors
    /// etcd cannot be reached.
    pub async fn from(client: &Client, revision: u64) -> Result<Self, Error> {
        Ok(Self {
            keyspace: client.keyspace().clone(),
            watch: PrefixWatch::start_with_previous(client, revision).await?,
            ready: VecDeque::new(),
        })
    }

    /// Asks etcd to say how far it has come; the answer is a [`Told::Quiet`], if it has told
    /// everything by then.
    ///
    /// # Errors
    /// The request finds no room on the stream within `patience`.
    pub async fn request_progress(&mut self, patience: Duration) -> Result<(), Error> {
        self.watch.request_progress(patience).await
    }

    /// Returns what comes next. Dropping the future loses nothing.
    ///
    /// # Errors
    /// [`Error::Compacted`] when what follows is no longer kept; [`Error::WatchEnded`] otherwise.
    pub async fn next(&mut self) -> Result<Told, Error> {
        loop {
            if let Some(written) = self.ready.pop_front() {
                return Ok(Told::Written(written));
            }
            match self.watch.next().await? {
                Message::Revisions(revisions) => {
                    for (revision, events) in revisions {
                        self.ready.push_back(self.read(revision, events));
                    }
                }
                Message::Progress(revision) => return Ok(Told::Quiet(revision)),
                Message::Nothing => {}
            }
        }
    }

    fn read(&self, revision: u64, events: Vec<PbEvent>) -> Written {
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
        Written {
            revision,
            changes: to_changes(&self.keyspace, events, &ReplicaMetrics::default()),
            nodes_before,
        }
    }
}
