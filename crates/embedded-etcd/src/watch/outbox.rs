//! Bounded queue of messages to one watch stream.

use std::{
    collections::VecDeque,
    sync::{Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
};

use super::message::Message;

/// Messages that wait for a reader. Each is a small struct; etcd holds 128 a stream, and a revision
/// of one key is one message, so this absorbs a reader's pause of some 50 ms at 20,000 puts/s.
const MAX_MESSAGES: usize = 1_024;

/// Events that wait for a reader; their records may be compacted meanwhile, so the limit bounds the
/// memory that a stuck reader pins: 16 MiB with events of 1 KiB.
const MAX_EVENTS: usize = 16_384;

/// The queue between the hub and the reader of one stream.
#[derive(Debug, Default)]
pub struct Outbox {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    queue: VecDeque<Message>,
    /// Events in `queue`.
    events: usize,
    /// A push was refused and waits for room.
    refused: bool,
    closed: bool,
    /// The reader that waits for a message.
    reader: Option<Waker>,
    /// The task that waits for room.
    waiting_for_room: Option<Waker>,
}

impl Inner {
    fn is_full(&self) -> bool {
        self.queue.len() >= MAX_MESSAGES || self.events >= MAX_EVENTS
    }

    /// Room enough that catching up is worth a scan of the history.
    fn has_much_room(&self) -> bool {
        self.queue.len() <= MAX_MESSAGES / 4 && self.events <= MAX_EVENTS / 4
    }
}

impl Outbox {
    /// Queues events, or refuses when the reader is too far behind. A message larger than the bound
    /// is taken when there is nothing before it: a revision is never cut in two.
    pub fn try_push(&self, message: Message) -> bool {
        let mut inner = self.lock();
        if inner.closed {
            // The stream is closed, so the message is dropped.
            return true;
        }
        let too_many = inner.events + message.events() > MAX_EVENTS && !inner.queue.is_empty();
        if inner.is_full() || too_many {
            inner.refused = true;
            return false;
        }
        Self::push_and_wake(inner, message);
        true
    }

    /// Queues the answer to a request of the stream, full or not. The number of such answers is
    /// bounded by [`Outbox::poll_room`], which the reader of requests waits for.
    pub fn push(&self, message: Message) {
        let inner = self.lock();
        if !inner.closed {
            Self::push_and_wake(inner, message);
        }
    }

    fn push_and_wake(mut inner: MutexGuard<'_, Inner>, message: Message) {
        inner.events += message.events();
        inner.queue.push_back(message);
        let reader = inner.reader.take();
        drop(inner);
        if let Some(reader) = reader {
            reader.wake();
        }
    }

    /// Returns true if events would be accepted now. A negative answer counts as a refused push.
    pub fn has_room(&self) -> bool {
        let mut inner = self.lock();
        let has_room = inner.closed || inner.has_much_room();
        inner.refused |= !has_room;
        has_room
    }

    /// The next message; `None` when the stream is over. The flag tells that a push was refused
    /// for lack of room that is free now, so the hub has to be called.
    pub fn poll_next(&self, context: &mut Context<'_>) -> Poll<Option<(Message, bool)>> {
        let mut inner = self.lock();
        if inner.closed {
            return Poll::Ready(None);
        }
        let Some(message) = inner.queue.pop_front() else {
            inner.reader = Some(context.waker().clone());
            return Poll::Pending;
        };
        inner.events -= message.events();
        let call_hub = inner.refused && inner.has_much_room();
        if call_hub {
            inner.refused = false;
        }
        let waiting = if inner.is_full() {
            None
        } else {
            inner.waiting_for_room.take()
        };
        drop(inner);
        if let Some(waiting) = waiting {
            waiting.wake();
        }
        Poll::Ready(Some((message, call_hub)))
    }

    /// Ready when another request of the stream may be taken.
    pub fn poll_room(&self, context: &mut Context<'_>) -> Poll<()> {
        let mut inner = self.lock();
        if inner.closed || !inner.is_full() {
            return Poll::Ready(());
        }
        inner.waiting_for_room = Some(context.waker().clone());
        Poll::Pending
    }

    /// Takes the next message without waiting; for drivers that are not async.
    pub fn pop(&self) -> Option<Message> {
        let mut context = Context::from_waker(Waker::noop());
        match self.poll_next(&mut context) {
            Poll::Ready(next) => next.map(|(message, _)| message),
            Poll::Pending => None,
        }
    }

    /// Ends the stream; queued events are dropped.
    pub fn close(&self) {
        let mut inner = self.lock();
        inner.closed = true;
        inner.queue.clear();
        inner.events = 0;
        let wakers = [inner.reader.take(), inner.waiting_for_room.take()];
        drop(inner);
        wakers.into_iter().flatten().for_each(Waker::wake);
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // No code that holds the lock can panic half-way through a change.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
