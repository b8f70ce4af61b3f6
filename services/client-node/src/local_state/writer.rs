//! The thread that owns the database: commits what gathers, and does not give up on a disk.
//!
//! The database takes note of its first I/O error and refuses everything from then on, so after any
//! error it is let go of and opened again. Only a disk that says no is tried again; a database that
//! has become something else ends the thread, and with it the agent, whose next run puts it aside.

use std::collections::BTreeMap;
use std::thread;
use std::time::Duration;

use redb::Database;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::Instant;
use tracing::{error, info, warn};

use super::disk::{self, commit};
use crate::metrics::Metrics;

/// The pauses before a commit that failed is tried again: short at first, because a failure may
/// pass; longer, because a full disk stays full for a while.
const RETRY_PAUSES: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(3));
/// How long a disk is tried when the agent ends. Enough for one that is only slow; what it does not
/// take by then is asked of the servers, and found by the supervisors, in the next run.
pub(super) const CLOSE_LIMIT: Duration = Duration::from_secs(3);

/// Opens the database that was open before.
pub(super) type Reopen = Box<dyn Fn() -> Result<Database, redb::Error> + Send>;

pub(super) enum Write {
    Put(String, Vec<u8>),
    Delete(String),
    Flush(oneshot::Sender<()>),
    /// Commits what came before, lets go of the database, then answers. Not answered when the disk
    /// did not take it.
    Close(oneshot::Sender<()>),
}

pub(super) struct Writer {
    /// `None` between an error and the next try.
    pub(super) database: Option<Database>,
    pub(super) reopen: Reopen,
    /// Whether the disk takes what it is given; goes with the thread.
    pub(super) is_writing: watch::Sender<bool>,
    pub(super) metrics: Metrics,
}

impl Writer {
    /// Takes writes as they come and commits whatever has gathered while the last commit was made.
    pub(super) fn run(mut self, mut queue: mpsc::Receiver<Write>) {
        let mut gathered = Gathered::default();
        while let Some(write) = queue.blocking_recv() {
            gathered.take(write);
            if !self.commit(&mut gathered, &mut queue) {
                // Nobody who waits is told that it is on disk.
                return;
            }
            self.metrics.local_state_commits.inc();
            gathered.pending.clear();
            for done in gathered.waiting.drain(..) {
                // Whoever asked may have gone.
                let _ = done.send(());
            }
            if let Some((done, _)) = gathered.closing {
                drop(self.database.take());
                let _ = done.send(());
                return;
            }
        }
    }

    /// Commits what has gathered, however often it takes. Gives up, and returns `false`, when trying
    /// again cannot help, or when the agent ends and cannot wait.
    fn commit(&mut self, gathered: &mut Gathered, queue: &mut mpsc::Receiver<Write>) -> bool {
        let (mut pause, longest) = RETRY_PAUSES;
        loop {
            while let Ok(write) = queue.try_recv() {
                gathered.take(write);
            }
            let Err(error) = self.try_commit(&gathered.pending) else {
                if !self.is_writing.send_replace(true) {
                    info!("the local state is written again");
                }
                return true;
            };
            self.database = None;
            self.metrics.local_state_failures.inc();
            self.is_writing.send_replace(false);
            if !disk::is_of_the_disk(&error) {
                error!(%error, "the local state cannot be written any more");
                return false;
            }
            let is_late = |(_, limit): &(_, Instant)| Instant::now() >= *limit;
            if gathered.closing.as_ref().is_some_and(is_late) {
                error!(%error, "the disk does not take the last of the local state");
                return false;
            }
            warn!(%error, "cannot write the local state, trying again");
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

/// Key → value, `None`: to be deleted. The newest of a key counts, so a disk that does not take any
/// more bounds this by the number of allocations.
pub(super) type Pending = BTreeMap<String, Option<Vec<u8>>>;

/// What is to be committed together.
#[derive(Default)]
pub(super) struct Gathered {
    pub(super) pending: Pending,
    pub(super) waiting: Vec<oneshot::Sender<()>>,
    /// Who wants to end, and until when a disk that says no is tried.
    pub(super) closing: Option<(oneshot::Sender<()>, Instant)>,
}

impl Gathered {
    pub(super) fn take(&mut self, write: Write) {
        match write {
            Write::Put(key, value) => drop(self.pending.insert(key, Some(value))),
            Write::Delete(key) => drop(self.pending.insert(key, None)),
            Write::Flush(done) => self.waiting.push(done),
            Write::Close(done) => self.closing = Some((done, Instant::now() + CLOSE_LIMIT)),
        }
    }
}
