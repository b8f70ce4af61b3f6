//! The loop that keeps the index of services, and wakes the streams of nodes.

use std::collections::BTreeSet;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};
use std::time::Duration;

use api_view::service_index::ServiceIndex;
use gateway_core::Core;
use service_kit::clock::sleep_until_deadline;
use state::Snapshot;
use store::{Delta, Subscription};
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Changes of this time make one round of comparisons. Readers keep answers for seconds.
const COALESCE: Duration = Duration::from_millis(50);

/// The index as streams and the loop share it.
#[derive(Debug)]
pub(crate) struct SharedIndex {
    index: RwLock<ServiceIndex>,
    /// Counts rounds with a change.
    rounds: watch::Sender<u64>,
}

impl Default for SharedIndex {
    fn default() -> Self {
        Self {
            index: RwLock::default(),
            rounds: watch::Sender::new(0),
        }
    }
}

impl SharedIndex {
    pub(crate) fn read(&self) -> RwLockReadGuard<'_, ServiceIndex> {
        self.index.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells of rounds with a change.
    pub(crate) fn subscribe(&self) -> watch::Receiver<u64> {
        self.rounds.subscribe()
    }

    fn change(&self, change: impl FnOnce(&mut ServiceIndex) -> bool) {
        let mut index = self.index.write().unwrap_or_else(PoisonError::into_inner);
        let is_changed = change(&mut index);
        drop(index);
        if is_changed {
            self.rounds.send_modify(|rounds| *rounds += 1);
        }
    }
}

/// Runs until stopped, or until the replica stops.
pub(crate) async fn run(
    shared: Arc<SharedIndex>,
    core: Arc<Core>,
    (snapshot, mut subscription): (Snapshot, Subscription),
    stop: CancellationToken,
) {
    shared.change(|index| {
        *index = ServiceIndex::new(&snapshot);
        true
    });
    let mut affected = BTreeSet::new();
    let mut due: Option<Instant> = None;
    loop {
        let delta = tokio::select! {
            () = stop.cancelled() => return,
            () = sleep_until_deadline(due) => {
                due = None;
                let affected = std::mem::take(&mut affected);
                let snapshot = core.replica.snapshot();
                shared.change(|index| index.update(&snapshot, affected));
                continue;
            }
            delta = subscription.next() => delta,
        };
        match delta {
            None => return,
            Some(Delta::Resnapshot(snapshot)) => shared.change(|index| index.update_all(&snapshot)),
            Some(Delta::Changes { changes, .. }) => {
                affected.extend(shared.read().affected(&changes));
                if !affected.is_empty() && due.is_none() {
                    due = Some(Instant::now() + COALESCE);
                }
            }
        }
    }
}
