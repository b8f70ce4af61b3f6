//! The replica: an in-memory copy of the whole store in each service, at most a moment old.
//!
//! One tokio task (`feed`) lists, watches and applies; a [`Replica`] is a cheap handle for reads. Reads
//! never wait for the task: a [`Snapshot`] is taken without a lock and never changes.
//!
//! **Invariant**: snapshots are states that the store was in: whole revisions, in order.
//!
//! **Invariant**: a replica without a watch keeps serving its last state, and tells its age
//! ([`Replica::last_contact`]).

mod batch;
pub(crate) mod decode;
mod feed;
mod list;
pub(crate) mod metrics;
mod options;
mod shared;
mod subscription;

use std::sync::Arc;
use std::time::Duration;

use model::LeaderInfo;
use state::Snapshot;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

pub use metrics::ReplicaMetrics;
pub use options::{Interest, ReplicaOptions};
pub use subscription::{Delta, Subscription};

use crate::client::Client;
use crate::error::Error;
use crate::replica::shared::Shared;

/// A wait for a revision that ended without it.
#[derive(Debug, thiserror::Error)]
pub enum WaitError {
    #[error("the replica is at revision {applied} and did not reach {wanted} in time")]
    Timeout { wanted: u64, applied: u64 },
    #[error("the replica has stopped")]
    Stopped,
    /// A linearizable read could not get the store's revision.
    #[error("cannot read the store's revision")]
    Store(#[source] Error),
}

/// A handle of the replica. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Replica {
    shared: Arc<Shared>,
}

impl Replica {
    /// Starts the task that feeds the replica until drained. Returns at once: the snapshot is empty,
    /// at revision 0, until the first list is applied ([`Self::ready`]).
    pub fn start(client: Client, options: ReplicaOptions, drain: CancellationToken) -> Self {
        let shared = Arc::new(Shared::new(client, options.delta_capacity));
        let feed = feed::Feed::new(Arc::clone(&shared), options);
        tokio::spawn(async move {
            // The guard also reports the end of a feed that panics.
            let _stopped = shared_stop(&feed);
            feed.run(drain).await;
        });
        Self { shared }
    }

    /// Returns the newest state; never waits.
    pub fn snapshot(&self) -> Snapshot {
        self.shared.snapshot()
    }

    /// Returns the revision of the newest state; 0 before the first list.
    pub fn applied(&self) -> u64 {
        *self.shared.applied.borrow()
    }

    /// Waits for the first list.
    ///
    /// # Errors
    /// It is not applied within `timeout`, or the replica has stopped.
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

    /// Waits without limit until the replica is at a revision after `revision`. The state may be
    /// unchanged: the store's revision also counts keys outside the prefix.
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

    /// Returns a receiver of the newest applied revision, for loops that act on each new state.
    pub fn revisions(&self) -> watch::Receiver<u64> {
        self.shared.applied.subscribe()
    }

    /// Returns a state that includes every write acknowledged before the call.
    ///
    /// # Errors
    /// The store does not answer, or the replica does not reach its revision within `timeout`.
    pub async fn linearizable(&self, timeout: Duration) -> Result<Snapshot, WaitError> {
        let deadline = Instant::now() + timeout;
        let read = self.shared.client.current_revision();
        let revision = match tokio::time::timeout_at(deadline, read).await {
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

    /// Returns the newest state, and the changes after it as they are applied.
    pub fn subscribe(&self) -> (Snapshot, Subscription) {
        // The receiver comes first: a change in between is received and skipped.
        let deltas = self.shared.deltas.subscribe();
        let snapshot = self.snapshot();
        let subscription = Subscription::new(Arc::clone(&self.shared), deltas, snapshot.index());
        (snapshot, subscription)
    }

    /// Returns the time since the last message from the store: the age of a stale read.
    pub fn last_contact(&self) -> Option<Duration> {
        self.shared.last_contact().map(|at| at.elapsed())
    }

    /// Returns the leader of `service` as of the newest snapshot.
    pub fn leader(&self, service: &str) -> Option<LeaderInfo> {
        self.shared
            .snapshot()
            .leader(service)
            .map(|leader| leader.value.clone())
    }

    pub fn client(&self) -> &Client {
        &self.shared.client
    }
}

/// Returns a guard that notifies waiters of the feed's end, even by a panic.
fn shared_stop(feed: &feed::Feed) -> tokio_util::sync::DropGuard {
    feed.shared().stopped.clone().drop_guard()
}
