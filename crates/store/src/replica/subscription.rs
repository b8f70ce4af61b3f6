//! A subscription to applied changes, for services that need each change instead of states.

use std::collections::VecDeque;
use std::sync::Arc;

use state::{Change, Snapshot};
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

use crate::replica::batch::{Batch, Revision};
use crate::replica::shared::Shared;

/// One item of a subscription.
#[derive(Clone, Debug)]
pub enum Delta {
    /// All changes of one revision, but stored versions of jobs: a version comes with its job.
    Changes {
        revision: u64,
        changes: Arc<[Change]>,
    },
    /// Changes were missed (the subscriber was too slow, or the replica had to list again): start
    /// again from this state. The next items follow it.
    Resnapshot(Snapshot),
}

/// Every change after a snapshot, as [`Delta::Changes`] says. Bounded: a subscriber that falls behind gets a
/// new snapshot.
#[derive(Debug)]
pub struct Subscription {
    shared: Arc<Shared>,
    batches: broadcast::Receiver<Batch>,
    ready: VecDeque<Revision>,
    /// The revision up to which the subscriber has received everything.
    delivered: u64,
}

impl Subscription {
    pub(super) fn new(
        shared: Arc<Shared>,
        batches: broadcast::Receiver<Batch>,
        delivered: u64,
    ) -> Self {
        Self {
            shared,
            batches,
            ready: VecDeque::new(),
            delivered,
        }
    }

    /// Returns the next item; `None` once the replica has stopped. Dropping the future loses nothing.
    pub async fn next(&mut self) -> Option<Delta> {
        loop {
            while let Some(Revision { revision, changes }) = self.ready.pop_front() {
                if revision > self.delivered {
                    self.delivered = revision;
                    return Some(Delta::Changes { revision, changes });
                }
            }
            let stopped = self.shared.stopped.clone();
            let received = tokio::select! {
                biased;
                received = self.batches.recv() => received,
                () = stopped.cancelled() => return None,
            };
            match received {
                Ok(Batch::Revisions(revisions)) => self.ready.extend(revisions.iter().cloned()),
                // The state that the subscriber began with.
                Ok(Batch::Gap(revision)) if revision == self.delivered => {}
                Ok(Batch::Gap(_)) | Err(RecvError::Lagged(_)) => {
                    return Some(self.resnapshot());
                }
                Err(RecvError::Closed) => return None,
            }
        }
    }

    fn resnapshot(&mut self) -> Delta {
        // Everything sent so far was published before, so the state contains it.
        self.batches = self.batches.resubscribe();
        let snapshot = self.shared.snapshot();
        self.delivered = snapshot.index();
        self.ready.clear();
        Delta::Resnapshot(snapshot)
    }
}
