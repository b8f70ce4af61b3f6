//! The loop behind each caller: the store's watch on one side, a few batches on the other.

use std::sync::Arc;
use std::time::Duration;

use futures::Stream;
use futures::stream::unfold;
use prost::Message as _;
use proto::v1;
use store::{Tail, Told, Written};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};
use tokio::time::{Instant, sleep_until, timeout};

use super::{Filter, describe, past};
use crate::error::Error;
use crate::gateway::Shared;

/// How many callers a gateway serves: each is a watch at the store.
const STREAMS_MAX: usize = 256;
/// How many batches wait for a caller; the store keeps the rest.
const BATCHES_AHEAD: usize = 16;
/// How many bytes they have at most, as they are sent: one transaction's worth of writes, which is
/// 1 MiB, makes a few times that in events. A batch that is larger waits alone. With every caller as
/// slow as can be, a gateway holds 1 GiB.
const BYTES_AHEAD: u32 = 4 << 20;
/// How long the replica may take to reach a write before it is told with what is known.
const CATCH_UP: Duration = Duration::from_secs(1);
/// How long the store gets to say how far it has come before a bookmark is due.
const ASK_AHEAD: Duration = Duration::from_millis(500);

/// How long after a bookmark is due the store may still be silent.
const SILENCE_MAX: Duration = Duration::from_secs(5);

const BOOKMARK_DEFAULT: Duration = Duration::from_secs(10);
const BOOKMARK_LEAST: Duration = Duration::from_secs(1);

/// The callers that are served. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Streams {
    free: Arc<Semaphore>,
}

impl Default for Streams {
    fn default() -> Self {
        Self {
            free: Arc::new(Semaphore::new(STREAMS_MAX)),
        }
    }
}

/// What a caller asks for.
#[derive(Clone, Debug)]
pub struct Wish {
    pub filter: Filter,
    /// 0: what is written from now on.
    pub index: u64,
    /// `None`: the usual one.
    pub bookmark_interval: Option<Duration>,
}

/// Starts telling a caller.
///
/// # Errors
/// There are too many callers; the index was never reached; the store cannot be reached.
pub async fn open(
    gateway: Shared,
    wish: Wish,
) -> Result<impl Stream<Item = Result<v1::EventBatch, Error>> + Send + use<>, Error> {
    let slot = Arc::clone(&gateway.streams.free).try_acquire_owned();
    let slot = slot.map_err(|_| Error::EventStreams { most: STREAMS_MAX })?;
    let newest = gateway.client.current_revision().await?;
    let first = if wish.index == 0 {
        newest + 1
    } else {
        wish.index
    };
    if first > newest + 1 {
        return Err(Error::EventsAhead {
            index: wish.index,
            newest,
        });
    }
    // From a revision that is there: etcd does not say how far a watch has come that lies ahead.
    let tail = Tail::from(&gateway.client, first.min(newest)).await?;
    let (batches, received) = waiting();
    let interval = wish.bookmark_interval.unwrap_or(BOOKMARK_DEFAULT);
    let teller = Teller {
        gateway,
        filter: wish.filter,
        interval: interval.max(BOOKMARK_LEAST),
        tail,
        told: first - 1,
        batches,
        _slot: slot,
    };
    let (ended, end) = oneshot::channel();
    tokio::spawn(async move {
        // A caller that has gone does not want to know.
        let _ = ended.send(teller.run().await);
    });
    Ok(unfold(Some((received, end)), |state| async {
        let (mut received, end) = state?;
        match received.next().await {
            Some(batch) => Some((Ok(batch), Some((received, end)))),
            None => Some((Err(end.await.unwrap_or(Error::Draining)), None)),
        }
    }))
}

/// Returns both ends of what waits for a caller.
fn waiting() -> (Batches, Received) {
    let (sender, receiver) = mpsc::channel(BATCHES_AHEAD);
    let batches = Batches {
        sender,
        room: Arc::new(Semaphore::new(BYTES_AHEAD as usize)),
    };
    (batches, Received(receiver))
}

/// Where batches are put. Cheap to clone.
#[derive(Clone, Debug)]
struct Batches {
    sender: mpsc::Sender<(v1::EventBatch, OwnedSemaphorePermit)>,
    /// The bytes that may still wait.
    room: Arc<Semaphore>,
}

impl Batches {
    /// Puts a batch behind the others once there is room for it; `false`: the caller has gone.
    async fn put(&self, batch: v1::EventBatch) -> bool {
        let size = u32::try_from(batch.encoded_len()).unwrap_or(u32::MAX);
        let room = Arc::clone(&self.room).acquire_many_owned(size.min(BYTES_AHEAD));
        let room = tokio::select! {
            room = room => room,
            () = self.sender.closed() => return false,
        };
        match room {
            Ok(room) => self.sender.send((batch, room)).await.is_ok(),
            Err(_) => false,
        }
    }

    /// Returns when the caller has gone.
    async fn closed(&self) {
        self.sender.closed().await;
    }
}

/// Where the caller takes them.
struct Received(mpsc::Receiver<(v1::EventBatch, OwnedSemaphorePermit)>);

impl Received {
    async fn next(&mut self) -> Option<v1::EventBatch> {
        self.0.recv().await.map(|(batch, _)| batch)
    }
}

/// When the caller is told how far the stream has come. Only what the store has said of it is told:
/// a watch that died in silence must not look like a store in which nothing happens.
struct Bookmark {
    due: Instant,
    /// When the store was last asked.
    asked_at: Option<Instant>,
    /// Whether it has said anything since.
    is_heard: bool,
}

impl Bookmark {
    fn after(interval: Duration) -> Self {
        Self {
            due: Instant::now() + interval,
            asked_at: None,
            is_heard: false,
        }
    }

    /// Returns when to ask, or to look whether the answer is there.
    fn next(&self) -> Instant {
        match self.asked_at {
            None => self.due - ASK_AHEAD,
            Some(asked_at) => self.due.max(asked_at + ASK_AHEAD),
        }
    }

    fn is_overdue(&self) -> bool {
        self.due.elapsed() > SILENCE_MAX
    }
}

struct Teller {
    gateway: Shared,
    filter: Filter,
    interval: Duration,
    tail: Tail,
    /// Everything up to here has been told, or is not wanted.
    told: u64,
    batches: Batches,
    _slot: OwnedSemaphorePermit,
}

impl Teller {
    /// Tells until it cannot go on; returns why.
    async fn run(mut self) -> Error {
        match self.tell().await {
            Ok(never) => match never {},
            Err(error) => error,
        }
    }

    async fn tell(&mut self) -> Result<std::convert::Infallible, Error> {
        self.send(Vec::new()).await?;
        let drain = self.gateway.drain.clone();
        let batches = self.batches.clone();
        let mut bookmark = Bookmark::after(self.interval);
        loop {
            tokio::select! {
                biased;
                () = drain.cancelled() => return Err(Error::Draining),
                () = batches.closed() => return Err(Error::Draining),
                told = self.tail.next() => {
                    let told = told.map_err(|error| self.cut(error))?;
                    bookmark.is_heard = true;
                    if self.take(told).await? {
                        bookmark = Bookmark::after(self.interval);
                    }
                }
                () = sleep_until(bookmark.next()) => {
                    if bookmark.asked_at.is_some() && bookmark.is_heard {
                        self.send(Vec::new()).await?;
                        bookmark = Bookmark::after(self.interval);
                        continue;
                    }
                    if bookmark.is_overdue() {
                        let reason = "the store has been silent for too long".to_owned();
                        return Err(self.cut(store::Error::WatchEnded { reason }));
                    }
                    bookmark.asked_at = Some(Instant::now());
                    bookmark.is_heard = false;
                    let asked = self.tail.request_progress(ASK_AHEAD).await;
                    asked.map_err(|error| self.cut(error))?;
                }
            }
        }
    }

    /// Takes in what the store tells; returns whether the caller was told of it.
    async fn take(&mut self, told: Told) -> Result<bool, Error> {
        let written = match told {
            Told::Quiet(revision) => {
                self.told = self.told.max(revision);
                return Ok(false);
            }
            Told::Written(written) if written.revision <= self.told => return Ok(false),
            Told::Written(written) => written,
        };
        let events = self.events(&written).await?;
        self.told = self.told.max(written.revision);
        if events.is_empty() {
            return Ok(false);
        }
        self.send(events).await?;
        Ok(true)
    }

    async fn events(&self, written: &Written) -> Result<Vec<v1::Event>, Error> {
        let replica = &self.gateway.replica;
        let reached = replica.wait_for(written.revision, CATCH_UP).await;
        let snapshot = reached.unwrap_or_else(|_| replica.snapshot());
        let past = past::read(&self.gateway.client, written, &snapshot).await;
        let past = past.map_err(|error| self.cut(error))?;
        let mut events = describe(written, &snapshot, &past);
        events.retain(|event| self.filter.admits(event));
        Ok(events)
    }

    async fn send(&self, events: Vec<v1::Event>) -> Result<(), Error> {
        let index = self.told;
        let batch = v1::EventBatch { index, events };
        // The caller goes on after the last one that it was told, which this one is not.
        let patience = self.gateway.config.event_stream_patience;
        match timeout(patience, self.batches.put(batch)).await {
            Ok(true) => Ok(()),
            Ok(false) => Err(Error::Draining),
            Err(_) => Err(Error::EventsSlow { patience }),
        }
    }

    fn cut(&self, error: store::Error) -> Error {
        match error {
            store::Error::Compacted { revision } => Error::EventsForgotten {
                next: self.told + 1,
                oldest: revision,
            },
            source => Error::EventsCut {
                next: self.told + 1,
                source,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How long a caller that takes nothing is waited for.
    const PATIENCE: Duration = Duration::from_secs(30);

    fn batch(index: u64, bytes: usize) -> v1::EventBatch {
        let event = v1::Event {
            key: "x".repeat(bytes),
            ..v1::Event::default()
        };
        v1::EventBatch {
            index,
            events: vec![event],
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_waits_for_a_caller_is_bounded_in_bytes() {
        let third = BYTES_AHEAD as usize / 3;
        let (batches, mut received) = waiting();
        for index in 1..=2 {
            assert!(
                timeout(PATIENCE, batches.put(batch(index, third)))
                    .await
                    .unwrap()
            );
        }
        let one_more = timeout(PATIENCE, batches.put(batch(3, third))).await;
        assert!(
            one_more.is_err(),
            "far fewer than the batches that may wait"
        );
        // What was taken makes room again.
        assert_eq!(received.next().await.unwrap().index, 1);
        assert!(batches.put(batch(3, third)).await);
        assert_eq!(received.next().await.unwrap().index, 2);
        assert_eq!(received.next().await.unwrap().index, 3);
    }

    #[tokio::test(start_paused = true)]
    async fn a_batch_larger_than_the_bound_waits_alone() {
        let (batches, mut received) = waiting();
        let whole = BYTES_AHEAD as usize * 2;
        assert!(batches.put(batch(1, whole)).await);
        assert!(timeout(PATIENCE, batches.put(batch(2, 1))).await.is_err());
        assert_eq!(received.next().await.unwrap().index, 1);
        assert!(batches.put(batch(2, 1)).await);
        let waits = batches.clone();
        let putting = tokio::spawn(async move { waits.put(batch(3, whole)).await });
        drop(received);
        assert!(!putting.await.unwrap(), "the caller has gone");
    }
}
