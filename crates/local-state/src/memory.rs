//! Storage of a simulated node: outlives the agent, like a disk, and loses uncommitted writes.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use service_kit::IdSource;
use tokio::sync::{mpsc, watch};
use tokio::time::sleep;

use crate::identity::Identity;
use crate::queue::{Batch, Pending, Write};
use crate::records::Restored;

/// Storage of one node. Cheap to clone; clones share the content.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    content: Arc<Mutex<Content>>,
}

#[derive(Default)]
struct Content {
    identity: Option<Identity>,
    rows: BTreeMap<String, Vec<u8>>,
    write_time: Duration,
}

impl std::fmt::Debug for Content {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Content").finish_non_exhaustive()
    }
}

impl Memory {
    /// Sets the duration of a commit. Its writes are lost if the agent ends meanwhile.
    pub fn set_write_time(&self, write_time: Duration) {
        self.lock().write_time = write_time;
    }

    /// Returns the store and the highest revision acted on, as read back after a crash; `None`: none
    /// yet.
    pub fn acted_on(&self) -> Option<(String, u64)> {
        let node = self.read().node;
        (node.revision > 0).then_some((node.store_id, node.revision))
    }

    /// Returns the node's identity: the first one drawn.
    pub(crate) fn identity(&self, ids: &IdSource) -> Identity {
        let mut content = self.lock();
        content
            .identity
            .get_or_insert_with(|| Identity::new(ids, None))
            .clone()
    }

    pub(crate) fn read(&self) -> Restored {
        let mut restored = Restored::default();
        for (key, value) in &self.lock().rows {
            restored.add(key, value);
        }
        restored
    }

    fn commit(&self, pending: &Pending) {
        let mut content = self.lock();
        for (key, value) in pending {
            match value {
                Some(value) => drop(content.rows.insert(key.clone(), value.clone())),
                None => drop(content.rows.remove(key)),
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Content> {
        // Each critical section is a single step.
        self.content.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The counterpart of the writer thread.
    pub(crate) async fn run(
        self,
        mut queue: mpsc::Receiver<Write>,
        is_writing: watch::Sender<bool>,
    ) {
        let mut batch = Batch::default();
        while let Some(write) = queue.recv().await {
            batch.add(write);
            let write_time = self.lock().write_time;
            if !write_time.is_zero() {
                sleep(write_time).await;
            }
            while let Ok(write) = queue.try_recv() {
                batch.add(write);
            }
            self.commit(&batch.pending);
            batch.committed();
            if let Some((done, _)) = batch.closing.take() {
                let _ = done.send(());
                break;
            }
        }
        drop(is_writing);
    }
}
