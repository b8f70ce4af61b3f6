//! The loop around the [`Machine`]: takes requests in batches, stores their changes as a whole,
//! publishes, and only then answers. It decides nothing.

use std::{
    net::SocketAddr,
    sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard},
    time::Duration,
};

use tokio::{
    sync::{Notify, mpsc, oneshot},
    time::Instant,
};
use tokio_util::sync::CancellationToken;

use crate::{
    error::{ApiError, Error},
    machine::Machine,
    storage::{Backend, Change},
};

/// Requests that wait for the loop; callers wait for room beyond it. As many as a client of ours
/// ever has in flight, and a few batches' worth.
const QUEUE: usize = 4_096;

/// Requests executed before their changes are stored: bounds how long readers are kept out.
const MAX_BATCH_REQUESTS: usize = 1_024;

/// Changes after which no further request joins the batch; some 10 ms of work for the disk.
const MAX_BATCH_CHANGES: usize = 8_192;

/// Bytes of changes after which no further request joins the batch; as long to sync as 8,192 of
/// the usual 300 bytes.
const MAX_BATCH_BYTES: usize = 4 * 1024 * 1024;

/// The longest time for which a commit without durability stays unsynced.
const FLUSH_INTERVAL: Duration = Duration::from_secs(1);

/// A request as a closure: called once with the machine and the time.
type Work = Box<dyn FnOnce(&mut Machine, Duration) -> Answer + Send>;

/// Work for the loop.
struct Request {
    /// The time at which the request arrived. It is executed as of then, however long the loop was
    /// busy with the disk: a lease that its client kept alive in time must not end because of a
    /// slow disk.
    arrived: Duration,
    work: Work,
}

/// Tells the caller, once the work is safe.
type Answer = Box<dyn FnOnce() + Send>;

/// A handle of the store for its listeners. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Handle {
    shared: Arc<Shared>,
    requests: mpsc::Sender<Request>,
}

struct Shared {
    machine: RwLock<Machine>,
    backend: Backend,
    /// Rung when a lagging watch has room.
    room: Notify,
    started: Instant,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Shared").finish_non_exhaustive()
    }
}

impl Shared {
    fn read(&self) -> RwLockReadGuard<'_, Machine> {
        self.machine.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Machine> {
        self.machine.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Handle {
    /// Reads the published state.
    pub(crate) fn read<T>(&self, read: impl FnOnce(&Machine) -> T) -> T {
        read(&self.shared.read())
    }

    /// Has the loop do `work`; the answer comes when its effects are stored and published.
    ///
    /// # Errors
    /// [`ApiError::Stopped`], after which the work may or may not have been done.
    pub(crate) async fn call<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Machine, Duration) -> T + Send + 'static,
    ) -> Result<T, ApiError> {
        let (sender, receiver) = oneshot::channel();
        let request = Request {
            arrived: self.shared.started.elapsed(),
            work: Box::new(move |machine, now| {
                let result = work(machine, now);
                // The caller may have given up; the work is done regardless.
                Box::new(move || drop(sender.send(result)))
            }),
        };
        self.requests
            .send(request)
            .await
            .map_err(|_| ApiError::Stopped)?;
        receiver.await.map_err(|_| ApiError::Stopped)
    }

    /// Reports the writer of `revision` to the journal.
    pub(crate) fn note_writer(&self, peer: Option<SocketAddr>, revision: i64) {
        if let Backend::Journal(journal) = &self.shared.backend {
            journal.note_writer(peer, revision);
        }
    }

    /// Tells the loop that a watch that was behind has made room.
    pub(crate) fn watch_has_room(&self) {
        self.shared.room.notify_one();
    }

    /// Bytes the store takes: of its file, or of its records.
    pub(crate) fn size(&self) -> u64 {
        let in_memory = || self.read(|machine| machine.mvcc().size() as u64);
        self.shared.backend.size().unwrap_or_else(in_memory)
    }
}

/// The loop, ready to run.
pub(crate) struct Loop {
    shared: Arc<Shared>,
    requests: mpsc::Receiver<Request>,
    flush_at: Option<Instant>,
}

impl Loop {
    pub(crate) fn new(machine: Machine, backend: Backend) -> (Self, Handle) {
        let shared = Arc::new(Shared {
            machine: RwLock::new(machine),
            backend,
            room: Notify::new(),
            started: Instant::now(),
        });
        let (sender, receiver) = mpsc::channel(QUEUE);
        let handle = Handle {
            shared: Arc::clone(&shared),
            requests: sender,
        };
        let this = Self {
            shared,
            requests: receiver,
            flush_at: None,
        };
        (this, handle)
    }

    /// Runs until `stop`, or until the disk fails: then no request is answered any more, because the
    /// memory differs from the disk.
    ///
    /// # Errors
    /// [`Error::Storage`].
    pub(crate) async fn run(mut self, stop: CancellationToken) -> Result<(), Error> {
        // After any end, even by a panic, no request is served.
        let _stop_when_dropped = stop.clone().drop_guard();
        let result = self.steps(&stop).await;
        if let Err(error) = &result {
            tracing::error!(
                error = error as &dyn std::error::Error,
                "the store stops: what was written last could not be stored"
            );
        }
        self.shared.write().close_watches();
        result
    }

    async fn steps(&mut self, stop: &CancellationToken) -> Result<(), Error> {
        loop {
            let tick = self.next_tick();
            let first = tokio::select! {
                biased;
                () = stop.cancelled() => break,
                request = self.requests.recv() => request,
                () = self.shared.room.notified() => {
                    self.shared.write().watch_has_room();
                    None
                }
                () = sleep_until(tick) => None,
            };
            let answers = self.step(first).await?;
            for answer in answers {
                answer();
            }
            self.flush_if_due().await?;
        }
        self.shared.backend.flush().await
    }

    /// Carries out `first` and further waiting requests, stores and publishes them. The caller sends
    /// the answers.
    async fn step(&mut self, first: Option<Request>) -> Result<Vec<Answer>, Error> {
        let (answers, changes) = self.apply(first);
        if !changes.is_empty() {
            self.shared.backend.commit(changes).await?;
            self.shared.write().publish();
        }
        Ok(answers)
    }

    fn apply(&mut self, first: Option<Request>) -> (Vec<Answer>, Vec<Change>) {
        let mut machine = self.shared.write();
        let mut answers = Vec::new();
        // While more waits than one batch takes, time stands where the requests are.
        let mut now = None;
        let mut next = first.or_else(|| self.requests.try_recv().ok());
        while let Some(Request { arrived, work }) = next.take() {
            answers.push(work(&mut machine, arrived));
            let is_full = answers.len() >= MAX_BATCH_REQUESTS
                || machine.pending_changes() >= MAX_BATCH_CHANGES
                || machine.pending_bytes() >= MAX_BATCH_BYTES;
            if is_full {
                now = Some(arrived);
            } else {
                next = self.requests.try_recv().ok();
            }
        }
        machine.tick(now.unwrap_or_else(|| self.shared.started.elapsed()));
        let mut changes = machine.take_changes();
        if matches!(self.shared.backend, Backend::Memory) {
            // Nothing to store: published under the same lock.
            changes.clear();
            machine.publish();
        }
        (answers, changes)
    }

    fn next_tick(&self) -> Option<Instant> {
        let tick = self.shared.read().next_tick();
        let tick = tick.map(|due| self.shared.started + due);
        [tick, self.flush_at].into_iter().flatten().min()
    }

    async fn flush_if_due(&mut self) -> Result<(), Error> {
        if !self.shared.backend.needs_flush() {
            self.flush_at = None;
            return Ok(());
        }
        let due = *self
            .flush_at
            .get_or_insert_with(|| Instant::now() + FLUSH_INTERVAL);
        if due <= Instant::now() {
            self.shared.backend.flush().await?;
            self.flush_at = None;
        }
        Ok(())
    }
}

async fn sleep_until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests;
