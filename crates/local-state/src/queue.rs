//! Pending writes: queued by runners, merged, committed together.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::Instant;

/// Capacity of the queue: a few writes for each of a thousand runners. Beyond it runners wait, which
/// slows them down to the speed of the disk.
pub(crate) const QUEUE: usize = 4_096;
/// Retry limit for a failing disk when the agent ends: enough for a slow one. The next run of the
/// agent asks the servers for lost records, and the supervisors for running tasks.
pub(crate) const CLOSE_LIMIT: Duration = Duration::from_secs(3);

pub(crate) enum Write {
    Put(String, Vec<u8>),
    Delete(String),
    Flush(oneshot::Sender<()>),
    /// Commits the earlier writes, closes the database, then answers. Not answered when the commit
    /// failed.
    Close(oneshot::Sender<()>),
}

/// Key → value; `None`: delete. The newest write of a key wins, so the number of allocations bounds
/// the size while a disk fails.
pub(crate) type Pending = BTreeMap<String, Option<Vec<u8>>>;

/// The writes of one commit.
#[derive(Default)]
pub(crate) struct Batch {
    pub(crate) pending: Pending,
    pub(crate) flushes: Vec<oneshot::Sender<()>>,
    /// The close request and the retry deadline of its commit.
    pub(crate) closing: Option<(oneshot::Sender<()>, Instant)>,
}

impl Batch {
    pub(crate) fn add(&mut self, write: Write) {
        match write {
            Write::Put(key, value) => drop(self.pending.insert(key, Some(value))),
            Write::Delete(key) => drop(self.pending.insert(key, None)),
            Write::Flush(done) => self.flushes.push(done),
            Write::Close(done) => self.closing = Some((done, Instant::now() + CLOSE_LIMIT)),
        }
    }

    /// Answers the flushes of a committed batch.
    pub(crate) fn committed(&mut self) {
        self.pending.clear();
        for done in self.flushes.drain(..) {
            // The waiting caller may be gone.
            let _ = done.send(());
        }
    }
}
