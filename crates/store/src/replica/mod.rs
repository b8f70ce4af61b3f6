//! A copy of everything in the store, at most a moment old, in the memory of each service.
//!
//! One tokio task (`feed`) lists, watches and applies; a [`Replica`] is the cheap handle that the
//! rest of the service reads through. Reads never wait for it: a [`Snapshot`] is taken without a
//! lock and never changes.
//!
//! **Invariant**: snapshots are states that the store was in: whole revisions, in order.
//!
//! **Invariant**: a replica that lost its watch goes on answering from what it has, and says how
//! old that is ([`Replica::last_contact`]).

mod decode;
mod feed;
mod list;
mod metrics;
mod options;
mod subscription;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use model::LeaderInfo;
use state::Snapshot;
use tokio::sync::{broadcast, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

pub(crate) use decode::to_changes;
pub use metrics::ReplicaMetrics;
pub use options::ReplicaOptions;
pub use subscription::{Delta, Subscription};

use crate::client::Client;
use crate::error::Error;
use subscription::Batch;

/// Why waiting for a revision ended without it.
#[derive(Debug, thiserror::Error)]
pub enum WaitError {
    #[error("the replica is at revision {applied} and did not reach {wanted} in time")]
    Timeout { wanted: u64, applied: u64 },
    #[error("the replica has stopped")]
    Stopped,
    /// A linearizable read could not learn what it has to wait for.
    #[error("cannot learn the store's revision")]
    Store(#[source] Error),
}

/// A handle on the copy. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Replica {
    shared: Arc<Shared>,
}

#[derive(Debug)]
pub(crate) struct Shared {
    client: Client,
    snapshot: ArcSwap<Snapshot>,
    /// The revision of `snapshot`, sent after it is in place; 0 before the first list.
    applied: watch::Sender<u64>,
    /// The highest revision that anybody waited for, sent again by each who waits: makes the feed
    /// ask for progress.
    wanted: watch::Sender<u64>,
    deltas: broadcast::Sender<Batch>,
    /// When the store last said anything on the watch or in a list; `None`: never.
    last_contact: Mutex<Option<Instant>>,
    /// Cancelled when the feed has ended.
    stopped: CancellationToken,
}

impl Replica {
    /// Starts the task that fills the replica until drained. Returns at once: the snapshot is
    /// empty, at revision 0, until the first list is in ([`Self::ready`]).
    pub fn start(client: Client, options: ReplicaOptions, drain: CancellationToken) -> Self {
        let shared = Arc::new(Shared {
            client,
            snapshot: ArcSwap::default(),
            applied: watch::Sender::new(0),
            wanted: watch::Sender::new(0),
            deltas: broadcast::Sender::new(options.delta_capacity),
            last_contact: Mutex::new(None),
            stopped: CancellationToken::new(),
        });
        let feed = feed::Feed::new(Arc::clone(&shared), options);
        tokio::spawn(async move {
            // Ends by itself only when drained; dropped half-way it could not say that it stopped.
            let _stopped = shared_stop(&feed);
            feed.run(drain).await;
        });
        Self { shared }
    }

    /// Returns the newest state; never waits.
    pub fn snapshot(&self) -> Snapshot {
        self.shared.snapshot.load().as_ref().clone()
    }

    /// Returns the revision of the newest state; 0 before the first list.
    pub fn applied(&self) -> u64 {
        *self.shared.applied.borrow()
    }

    /// Waits for the first list.
    ///
    /// # Errors
    /// It is not in within `timeout`, or the replica has stopped.
    pub async fn ready(&self, timeout: Duration) -> Result<Snapshot, WaitError> {
        self.wait_for(1, timeout).await
    }

    /// Returns a state at `revision` or later.
    ///
    /// # Errors
    /// The replica does not get there within `timeout`, or it has stopped.
    pub async fn wait_for(&self, revision: u64, timeout: Duration) -> Result<Snapshot, WaitError> {
        if self.applied() < revision {
            self.shared
                .wanted
                .send_modify(|wanted| *wanted = revision.max(*wanted));
            let mut applied = self.shared.applied.subscribe();
            let reached = applied.wait_for(|applied| *applied >= revision);
            tokio::select! {
                biased;
                reached = tokio::time::timeout(timeout, reached) => {
                    if reached.is_err() {
                        let applied = self.applied();
                        return Err(WaitError::Timeout { wanted: revision, applied });
                    }
                }
                () = self.shared.stopped.cancelled() => return Err(WaitError::Stopped),
            }
        }
        Ok(self.snapshot())
    }

    /// Waits until the replica is at a revision after `revision`, for as long as that takes.
    /// Nothing of ours need have changed: the store's revision counts other keys, too.
    ///
    /// # Errors
    /// The replica has stopped.
    pub async fn changed(&self, revision: u64) -> Result<Snapshot, WaitError> {
        let mut applied = self.shared.applied.subscribe();
        tokio::select! {
            biased;
            _ = applied.wait_for(|applied| *applied > revision) => Ok(self.snapshot()),
            () = self.shared.stopped.cancelled() => Err(WaitError::Stopped),
        }
    }

    /// Returns the revisions that are applied, the newest only: for loops that look at the state
    /// whenever it has changed.
    pub fn revisions(&self) -> watch::Receiver<u64> {
        self.shared.applied.subscribe()
    }

    /// Returns a state that includes every write acknowledged before the call.
    ///
    /// # Errors
    /// The store does not tell its revision, or the replica does not get there within `timeout`.
    pub async fn linearizable(&self, timeout: Duration) -> Result<Snapshot, WaitError> {
        let deadline = Instant::now() + timeout;
        let asked = self.shared.client.current_revision();
        let revision = match tokio::time::timeout_at(deadline, asked).await {
            Ok(revision) => revision.map_err(WaitError::Store)?,
            Err(_) => {
                let error = Error::Unknown {
                    doing: "read the revision",
                    source: None,
                };
                return Err(WaitError::Store(error));
            }
        };
        self.wait_for(revision, deadline.saturating_duration_since(Instant::now()))
            .await
    }

    /// Returns the newest state, and every change after it as it is applied.
    pub fn subscribe(&self) -> (Snapshot, Subscription) {
        // First the ear, then the state: a change in between is heard and skipped.
        let deltas = self.shared.deltas.subscribe();
        let snapshot = self.snapshot();
        let subscription = Subscription::new(self.clone(), deltas, snapshot.index());
        (snapshot, subscription)
    }

    /// Returns how long ago the store was last heard of: the age of a stale read.
    pub fn last_contact(&self) -> Option<Duration> {
        let last = *self
            .shared
            .last_contact
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        last.map(|at| at.elapsed())
    }

    /// Returns how to reach the leader of `service`, as far as the replica knows.
    pub fn leader(&self, service: &str) -> Option<LeaderInfo> {
        self.shared
            .snapshot
            .load()
            .leader(service)
            .map(|leader| leader.value.clone())
    }

    pub fn client(&self) -> &Client {
        &self.shared.client
    }
}

/// Returns a guard that tells waiters when the feed is gone, even by a panic.
fn shared_stop(feed: &feed::Feed) -> tokio_util::sync::DropGuard {
    feed.shared().stopped.clone().drop_guard()
}
