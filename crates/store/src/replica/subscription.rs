//! The stream of applied changes, for services that follow each one instead of looking at states.

use std::collections::VecDeque;
use std::sync::Arc;

use state::{Change, Snapshot};
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

use crate::replica::Replica;

/// What happened next, as a subscriber sees it.
#[derive(Clone, Debug)]
pub enum Delta {
    /// Everything that one revision changed.
    Changes {
        revision: u64,
        changes: Arc<[Change]>,
    },
    /// Changes were missed (the subscriber was too slow, or the replica had to list again): forget
    /// everything and start from this state. What follows comes after it.
    Resnapshot(Snapshot),
}

/// What was applied together.
#[derive(Clone, Debug)]
pub(super) enum Batch {
    /// Ascending; not empty.
    Revisions(Arc<[Revision]>),
    /// The state at this revision did not come about by changes that were told: it was listed, or
    /// changed while nobody was thought to listen.
    Untold(u64),
}

#[derive(Clone, Debug)]
pub(super) struct Revision {
    pub(super) revision: u64,
    pub(super) changes: Arc<[Change]>,
}

/// Every change after a snapshot. Bounded: a subscriber that falls behind gets a new snapshot.
#[derive(Debug)]
pub struct Subscription {
    replica: Replica,
    batches: broadcast::Receiver<Batch>,
    ready: VecDeque<Revision>,
    /// The revision up to which the subscriber has been told everything.
    told: u64,
}

impl Subscription {
    pub(super) fn new(replica: Replica, batches: broadcast::Receiver<Batch>, told: u64) -> Self {
        Self {
            replica,
            batches,
            ready: VecDeque::new(),
            told,
        }
    }

    /// Returns what comes next; `None` once the replica has stopped. Dropping the future loses
    /// nothing.
    pub async fn next(&mut self) -> Option<Delta> {
        loop {
            while let Some(Revision { revision, changes }) = self.ready.pop_front() {
                if revision > self.told {
                    self.told = revision;
                    return Some(Delta::Changes { revision, changes });
                }
            }
            let stopped = self.replica.shared.stopped.clone();
            let received = tokio::select! {
                biased;
                received = self.batches.recv() => received,
                () = stopped.cancelled() => return None,
            };
            match received {
                Ok(Batch::Revisions(revisions)) => self.ready.extend(revisions.iter().cloned()),
                // The very state that the subscriber began with, if it came just then.
                Ok(Batch::Untold(revision)) if revision == self.told => {}
                Ok(Batch::Untold(_)) | Err(RecvError::Lagged(_)) => {
                    return Some(self.start_again());
                }
                Err(RecvError::Closed) => return None,
            }
        }
    }

    fn start_again(&mut self) -> Delta {
        // Everything sent so far was visible before it was sent, so the state has it.
        self.batches = self.batches.resubscribe();
        let snapshot = self.replica.snapshot();
        self.told = snapshot.index();
        self.ready.clear();
        Delta::Resnapshot(snapshot)
    }
}
