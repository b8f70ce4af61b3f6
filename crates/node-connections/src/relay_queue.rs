//! Queue of a relayed connection's bytes from the node, which never makes the node wait.
//!
//! The node's bytes come over the connection that its heartbeats use, too: if one stream were not read, the
//! window of that connection would fill, and the heartbeats would wait with it. What is on its way at any time is
//! bounded by the window of the HTTP/2 connection inside, so a queue of that size never overflows; a node that
//! ignores the window loses the connection.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::{Stream, StreamExt as _};
use service_kit::channel::RPC_WINDOW;
use tokio::sync::mpsc;
use tokio_stream::wrappers::UnboundedReceiverStream;

/// The window's bytes, and as many for all that is not subject to it.
const MAX_BYTES: usize = 2 * RPC_WINDOW as usize;

/// The sender of a queue.
pub(crate) struct RelayQueue {
    messages: mpsc::UnboundedSender<Vec<u8>>,
    bytes: Arc<AtomicUsize>,
}

/// The queue cannot take a message: it is full, or its reader is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct QueueFull;

impl RelayQueue {
    /// Returns the queue, and its messages.
    pub(crate) fn new() -> (Self, impl Stream<Item = Vec<u8>> + Send + use<>) {
        let (messages, receiver) = mpsc::unbounded_channel::<Vec<u8>>();
        let bytes = Arc::new(AtomicUsize::new(0));
        let taken = Arc::clone(&bytes);
        let stream = UnboundedReceiverStream::new(receiver).inspect(move |message| {
            taken.fetch_sub(message.len(), Ordering::Relaxed);
        });
        (Self { messages, bytes }, stream)
    }

    pub(crate) fn push(&self, message: Vec<u8>) -> Result<(), QueueFull> {
        let before = self.bytes.fetch_add(message.len(), Ordering::Relaxed);
        if before + message.len() > MAX_BYTES {
            return Err(QueueFull);
        }
        self.messages.send(message).map_err(|_| QueueFull)
    }

    /// Waits until the reader is gone.
    pub(crate) async fn closed(&self) {
        self.messages.closed().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_queue_takes_what_may_be_on_its_way_and_no_more() {
        let (queue, mut messages) = RelayQueue::new();
        let message = vec![7; RPC_WINDOW as usize];
        assert_eq!(queue.push(message.clone()), Ok(()));
        assert_eq!(queue.push(message.clone()), Ok(()));
        assert_eq!(messages.next().await, Some(message.clone()));
        assert_eq!(queue.push(message), Ok(()));
        assert_eq!(queue.push(vec![7]), Err(QueueFull));
        drop(messages);
        assert_eq!(queue.push(Vec::new()), Err(QueueFull));
        queue.closed().await;
    }
}
