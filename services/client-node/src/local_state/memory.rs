//! What a node of a simulation has in the place of a disk: it outlives the agent, and only what
//! was written in time.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use service_kit::IdSource;
use tokio::sync::{mpsc, watch};
use tokio::time::sleep;

use super::Restored;
use super::writer::{Gathered, Pending, Write};
use crate::identity::Identity;

/// What one node keeps. Cheap to clone; clones are the same.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    kept: Arc<Mutex<Kept>>,
}

#[derive(Default)]
struct Kept {
    identity: Option<Identity>,
    rows: BTreeMap<String, Vec<u8>>,
    write_time: Duration,
}

impl std::fmt::Debug for Kept {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Kept").finish_non_exhaustive()
    }
}

impl Memory {
    /// Sets how long a commit takes; what is in it is lost if the agent ends meanwhile.
    pub fn set_write_time(&self, write_time: Duration) {
        self.lock().write_time = write_time;
    }

    /// Returns the store that the node counts in, and the highest revision that it has acted on, as
    /// it would know after a crash; `None`: none yet.
    pub fn acted_on(&self) -> Option<(String, u64)> {
        let node = self.read().node;
        (node.revision > 0).then_some((node.store_id, node.revision))
    }

    /// Returns who the node is: for ever what was drawn first.
    pub(crate) fn identity(&self, ids: &IdSource) -> Identity {
        let mut kept = self.lock();
        kept.identity
            .get_or_insert_with(|| Identity::new(ids))
            .clone()
    }

    pub(super) fn read(&self) -> Restored {
        let mut restored = Restored::default();
        for (key, value) in &self.lock().rows {
            restored.add(key, value);
        }
        restored
    }

    fn commit(&self, pending: &Pending) {
        let mut kept = self.lock();
        for (key, value) in pending {
            match value {
                Some(value) => drop(kept.rows.insert(key.clone(), value.clone())),
                None => drop(kept.rows.remove(key)),
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        // Each change is whole.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does as the thread with the database does.
    pub(super) async fn run(
        self,
        mut queue: mpsc::Receiver<Write>,
        is_writing: watch::Sender<bool>,
    ) {
        let mut gathered = Gathered::default();
        while let Some(write) = queue.recv().await {
            gathered.take(write);
            let write_time = self.lock().write_time;
            if !write_time.is_zero() {
                sleep(write_time).await;
            }
            while let Ok(write) = queue.try_recv() {
                gathered.take(write);
            }
            self.commit(&gathered.pending);
            gathered.pending.clear();
            for done in gathered.waiting.drain(..) {
                // Whoever asked may have gone.
                let _ = done.send(());
            }
            if let Some((done, _)) = gathered.closing.take() {
                let _ = done.send(());
                break;
            }
        }
        drop(is_writing);
    }
}
