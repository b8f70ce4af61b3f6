//! The writer thread: owns the database, commits batches, retries a failing disk.
//!
//! redb refuses every operation after its first I/O error, so the database is closed and reopened
//! after each error. Only disk errors are retried. Any other error ends the thread, and with it the
//! agent, whose next run sets the database aside.

use std::thread;
use std::time::Duration;

use redb::Database;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;
use tracing::{error, info, warn};

use crate::disk::{self, commit};
use crate::metrics::Metrics;
use crate::queue::{Batch, Pending, Write};

/// Shortest and longest pause before a failed commit is retried: short for a temporary failure, long
/// for a full disk.
const RETRY_PAUSES: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(3));
/// Opens the same database again.
pub(crate) type Reopen = Box<dyn Fn() -> Result<Database, redb::Error> + Send>;

pub(crate) struct Writer {
    /// `None` between an error and the next retry.
    pub(crate) database: Option<Database>,
    pub(crate) reopen: Reopen,
    /// True while commits succeed; dropped with the thread.
    pub(crate) is_writing: watch::Sender<bool>,
    pub(crate) metrics: Metrics,
}

impl Writer {
    /// Commits writes; those that arrive during a commit form the next batch.
    pub(crate) fn run(mut self, mut queue: mpsc::Receiver<Write>) {
        let mut batch = Batch::default();
        while let Some(write) = queue.blocking_recv() {
            batch.add(write);
            if !self.commit(&mut batch, &mut queue) {
                // Pending flushes stay unanswered.
                return;
            }
            self.metrics.commits.inc();
            batch.committed();
            if let Some((done, _)) = batch.closing {
                drop(self.database.take());
                let _ = done.send(());
                return;
            }
        }
    }

    /// Commits the batch, with retries. Returns `false` when a retry cannot help, or when the close
    /// deadline has passed.
    fn commit(&mut self, batch: &mut Batch, queue: &mut mpsc::Receiver<Write>) -> bool {
        let (mut pause, longest) = RETRY_PAUSES;
        loop {
            while let Ok(write) = queue.try_recv() {
                batch.add(write);
            }
            let Err(error) = self.try_commit(&batch.pending) else {
                if !self.is_writing.send_replace(true) {
                    info!("the local state can be written again");
                }
                return true;
            };
            self.database = None;
            self.metrics.failures.inc();
            self.is_writing.send_replace(false);
            if !disk::is_disk_error(&error) {
                error!(%error, "cannot write the local state, and retrying cannot help");
                return false;
            }
            let is_late = |(_, limit): &(_, Instant)| Instant::now() >= *limit;
            if batch.closing.as_ref().is_some_and(is_late) {
                error!(%error, "cannot write the last records of the local state before the end");
                return false;
            }
            warn!(%error, "cannot write the local state; retrying");
            thread::sleep(pause);
            pause = (pause * 2).min(longest);
        }
    }

    fn try_commit(&mut self, pending: &Pending) -> Result<(), redb::Error> {
        let database = match self.database.take() {
            Some(database) => database,
            None => (self.reopen)()?,
        };
        commit(self.database.insert(database), pending)
    }
}
