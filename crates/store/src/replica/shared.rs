//! The state that a replica's feed, its handles and its subscriptions share.

use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;
use state::Snapshot;
use tokio::sync::{broadcast, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::client::Client;
use crate::replica::batch::Batch;

#[derive(Debug)]
pub(crate) struct Shared {
    pub(super) client: Client,
    snapshot: ArcSwap<Snapshot>,
    /// The revision of `snapshot`, sent after it is in place; 0 before the first list.
    pub(super) applied: watch::Sender<u64>,
    /// The highest revision that a reader waits for, sent again by each reader: makes the feed
    /// request progress.
    pub(super) wanted: watch::Sender<u64>,
    pub(super) deltas: broadcast::Sender<Batch>,
    /// Time of the last message on the watch or of the last list; `None`: never.
    last_contact: Mutex<Option<Instant>>,
    /// Cancelled when the feed has ended.
    pub(super) stopped: CancellationToken,
}

impl Shared {
    pub(super) fn new(client: Client, delta_capacity: usize) -> Self {
        Self {
            client,
            snapshot: ArcSwap::default(),
            applied: watch::Sender::new(0),
            wanted: watch::Sender::new(0),
            deltas: broadcast::Sender::new(delta_capacity),
            last_contact: Mutex::new(None),
            stopped: CancellationToken::new(),
        }
    }

    /// Returns the newest state.
    pub(super) fn snapshot(&self) -> Snapshot {
        self.snapshot.load().as_ref().clone()
    }

    /// Shows a newer state: first the snapshot, then its revision.
    pub(super) fn publish(&self, snapshot: Snapshot) {
        let revision = snapshot.index();
        self.snapshot.store(Arc::new(snapshot));
        self.applied.send_replace(revision);
    }

    /// Returns the time of the last message from the store; `None`: never.
    pub(super) fn last_contact(&self) -> Option<Instant> {
        *self
            .last_contact
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a message from the store.
    pub(super) fn touch(&self) {
        let mut last = self
            .last_contact
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        *last = Some(Instant::now());
    }
}
