//! The task behind each caller of the event stream: a watch in, a few batches out.

use std::sync::Arc;
use std::time::Duration;

use event_stream::bookmark::ASK_AHEAD;
use event_stream::{Bookmark, BookmarkAction, BookmarkEvent, Filter, describe, past};
use futures::Stream;
use futures::stream::unfold;
use gateway_core::Error;
use prost::Message as _;
use proto::v1;
use store::{ChangeStream, RevisionChanges, StreamItem};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};
use tokio::time::{Instant, sleep_until};
use tonic::Code;

use crate::gateway::Shared;

/// The largest number of batches that wait for a caller; the store keeps the rest.
const BATCHES_AHEAD: usize = 16;
/// The limit of encoded bytes that wait for a caller: the writes of one transaction, at most 1 MiB,
/// make a few times that in events. A larger batch waits alone. With every caller stalled a gateway
/// holds 1 GiB.
const BYTES_AHEAD: u32 = 4 << 20;
/// The timeout for the replica to reach a write, before its events are described from older state.
const CATCH_UP: Duration = Duration::from_secs(1);
const BOOKMARK_DEFAULT: Duration = Duration::from_secs(10);
const BOOKMARK_LEAST: Duration = Duration::from_secs(1);

/// The reason why a stream cannot begin or go on.
#[derive(Debug, thiserror::Error)]
enum StreamError {
    #[error(
        "index {index} was never reached, the newest is {newest}: was the store restored from a \
         backup? Read the current state, and resume from index {}",
        newest + 1
    )]
    Ahead { index: u64, newest: u64 },
    #[error(
        "index {next} is compacted away{}: read the current state, and resume from its index",
        oldest_kept(*oldest)
    )]
    Compacted { next: u64, oldest: u64 },
    #[error(
        "the caller took no event for {}s: resume after the last index received",
        timeout.as_secs_f64()
    )]
    Slow { timeout: Duration },
    #[error("the stream of events broke: resume from index {next}")]
    Broken {
        next: u64,
        #[source]
        source: store::Error,
    },
}

impl From<StreamError> for Error {
    fn from(error: StreamError) -> Self {
        let code = match error {
            StreamError::Ahead { .. } | StreamError::Compacted { .. } => Code::OutOfRange,
            StreamError::Slow { .. } => Code::ResourceExhausted,
            StreamError::Broken { .. } => Code::Unavailable,
        };
        Self::new(code, error)
    }
}

fn oldest_kept(revision: u64) -> String {
    match revision {
        0 => String::new(),
        oldest => format!(", the oldest kept is {oldest}"),
    }
}

/// A request for a stream.
#[derive(Clone, Debug)]
pub struct StreamRequest {
    pub filter: Filter,
    /// The first index; 0: the next write.
    pub index: u64,
    /// `None`: the default.
    pub bookmark_interval: Option<Duration>,
}

/// Starts a stream.
///
/// # Errors
/// There are too many streams; the index was never reached; the store cannot be reached.
pub async fn open(
    gateway: Shared,
    request: StreamRequest,
) -> Result<impl Stream<Item = Result<v1::EventBatch, Error>> + Send + use<>, Error> {
    let slot = gateway.streams.take()?;
    let newest = gateway.core.client.current_revision().await?;
    let first = if request.index == 0 {
        newest + 1
    } else {
        request.index
    };
    if first > newest + 1 {
        return Err(StreamError::Ahead {
            index: request.index,
            newest,
        }
        .into());
    }
    // From an existing revision: etcd reports no progress of a watch that starts in the future.
    let tail = ChangeStream::from(&gateway.core.client, first.min(newest)).await?;
    let (batches, received) = queue();
    let interval = request.bookmark_interval.unwrap_or(BOOKMARK_DEFAULT);
    let sender = EventSender {
        gateway,
        filter: request.filter,
        interval: interval.max(BOOKMARK_LEAST),
        tail,
        sent: first - 1,
        batches,
        _slot: slot,
    };
    let (ended, end) = oneshot::channel();
    tokio::spawn(async move {
        // The caller may have gone.
        let _ = ended.send(sender.run().await);
    });
    Ok(unfold(Some((received, end)), |state| async {
        let (mut received, end) = state?;
        match received.next().await {
            Some(batch) => Some((Ok(batch), Some((received, end)))),
            None => Some((Err(end.await.unwrap_or_else(|_| Error::draining())), None)),
        }
    }))
}

/// Returns both ends of a caller's queue.
fn queue() -> (Batches, Received) {
    let (sender, receiver) = mpsc::channel(BATCHES_AHEAD);
    let batches = Batches {
        sender,
        room: Arc::new(Semaphore::new(BYTES_AHEAD as usize)),
    };
    (batches, Received(receiver))
}

/// The sending end of a caller's queue. Cheap to clone.
#[derive(Clone, Debug)]
struct Batches {
    sender: mpsc::Sender<(v1::EventBatch, OwnedSemaphorePermit)>,
    /// The bytes that may still be queued.
    room: Arc<Semaphore>,
}

impl Batches {
    /// Queues a batch once there is room for it; `false`: the caller has gone.
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

/// The receiving end of a caller's queue.
struct Received(mpsc::Receiver<(v1::EventBatch, OwnedSemaphorePermit)>);

impl Received {
    async fn next(&mut self) -> Option<v1::EventBatch> {
        self.0.recv().await.map(|(batch, _)| batch)
    }
}

struct EventSender {
    gateway: Shared,
    filter: Filter,
    interval: Duration,
    tail: ChangeStream,
    /// Everything up to this index was sent or filtered out.
    sent: u64,
    batches: Batches,
    _slot: OwnedSemaphorePermit,
}

impl EventSender {
    /// Sends events until the stream has to end; returns the reason.
    async fn run(mut self) -> Error {
        match self.send_all().await {
            Ok(never) => match never {},
            Err(error) => error,
        }
    }

    async fn send_all(&mut self) -> Result<std::convert::Infallible, Error> {
        self.send(Vec::new()).await?;
        let drain = self.gateway.drain.clone();
        let batches = self.batches.clone();
        let began = Instant::now();
        let mut bookmark = Bookmark::new(Duration::ZERO, self.interval);
        loop {
            let event = tokio::select! {
                biased;
                () = drain.cancelled() => return Err(Error::draining()),
                () = batches.closed() => return Err(Error::draining()),
                change = self.tail.next() => {
                    let change = change.map_err(|error| self.cut(error))?;
                    bookmark.step(began.elapsed(), BookmarkEvent::Heard);
                    if !self.take(change).await? {
                        continue;
                    }
                    BookmarkEvent::Sent
                }
                () = sleep_until(began + bookmark.next()) => BookmarkEvent::Tick,
            };
            match bookmark.step(began.elapsed(), event) {
                BookmarkAction::Wait => {}
                BookmarkAction::Ask => {
                    let asked = self.tail.request_progress(ASK_AHEAD).await;
                    asked.map_err(|error| self.cut(error))?;
                }
                BookmarkAction::Send => {
                    self.send(Vec::new()).await?;
                    bookmark.step(began.elapsed(), BookmarkEvent::Sent);
                }
                BookmarkAction::End => {
                    let reason = "the store has been silent for too long".to_owned();
                    return Err(self.cut(store::Error::WatchEnded { reason }));
                }
            }
        }
    }

    /// Handles a message of the watch; returns whether a batch was sent.
    async fn take(&mut self, item: StreamItem) -> Result<bool, Error> {
        let written = match item {
            StreamItem::Progress(revision) => {
                self.sent = self.sent.max(revision);
                return Ok(false);
            }
            StreamItem::Changes(written) if written.revision <= self.sent => return Ok(false),
            StreamItem::Changes(written) => written,
        };
        let events = self.events(&written).await?;
        self.sent = self.sent.max(written.revision);
        if events.is_empty() {
            return Ok(false);
        }
        self.send(events).await?;
        Ok(true)
    }

    async fn events(&self, written: &RevisionChanges) -> Result<Vec<v1::Event>, Error> {
        let replica = &self.gateway.core.replica;
        let reached = replica.wait_for(written.revision, CATCH_UP).await;
        let snapshot = reached.unwrap_or_else(|_| replica.snapshot());
        let past = past::read(&self.gateway.core.client, written, &snapshot).await;
        let past = past.map_err(|error| self.cut(error))?;
        let mut events = describe(written, &snapshot, &past);
        events.retain(|event| self.filter.admits(event));
        Ok(events)
    }

    async fn send(&self, events: Vec<v1::Event>) -> Result<(), Error> {
        let index = self.sent;
        let batch = v1::EventBatch { index, events };
        let timeout = self.gateway.config.event_stream_timeout;
        match tokio::time::timeout(timeout, self.batches.put(batch)).await {
            Ok(true) => Ok(()),
            Ok(false) => Err(Error::draining()),
            Err(_) => Err(StreamError::Slow { timeout }.into()),
        }
    }

    fn cut(&self, error: store::Error) -> Error {
        match error {
            store::Error::Compacted { revision } => StreamError::Compacted {
                next: self.sent + 1,
                oldest: revision,
            }
            .into(),
            source => StreamError::Broken {
                next: self.sent + 1,
                source,
            }
            .into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::timeout;

    use super::*;

    /// The timeout for a stalled caller.
    const TIMEOUT: Duration = Duration::from_secs(30);

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
    async fn the_queue_of_a_caller_is_bounded_in_bytes() {
        let third = BYTES_AHEAD as usize / 3;
        let (batches, mut received) = queue();
        for index in 1..=2 {
            assert!(
                timeout(TIMEOUT, batches.put(batch(index, third)))
                    .await
                    .unwrap()
            );
        }
        let one_more = timeout(TIMEOUT, batches.put(batch(3, third))).await;
        assert!(
            one_more.is_err(),
            "far fewer than the batches that may wait"
        );
        // A taken batch makes room again.
        assert_eq!(received.next().await.unwrap().index, 1);
        assert!(batches.put(batch(3, third)).await);
        assert_eq!(received.next().await.unwrap().index, 2);
        assert_eq!(received.next().await.unwrap().index, 3);
    }

    #[tokio::test(start_paused = true)]
    async fn a_batch_larger_than_the_bound_waits_alone() {
        let (batches, mut received) = queue();
        let whole = BYTES_AHEAD as usize * 2;
        assert!(batches.put(batch(1, whole)).await);
        assert!(timeout(TIMEOUT, batches.put(batch(2, 1))).await.is_err());
        assert_eq!(received.next().await.unwrap().index, 1);
        assert!(batches.put(batch(2, 1)).await);
        let waits = batches.clone();
        let putting = tokio::spawn(async move { waits.put(batch(3, whole)).await });
        drop(received);
        assert!(!putting.await.unwrap(), "the caller has gone");
    }
}
