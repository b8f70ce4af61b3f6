//! The queue between the RPCs of a process and the loop of its leader, which runs for one term.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::mpsc;

/// Passes messages to the leader's loop while this process leads. Cheap to clone.
#[derive(Debug)]
pub struct TermQueue<T> {
    /// The sender of the newest term.
    newest: Arc<Mutex<Option<mpsc::Sender<T>>>>,
}

impl<T> TermQueue<T> {
    /// Opens the queue of a new term, of up to `capacity` messages. It closes with the receiver.
    pub fn open(&self, capacity: usize) -> mpsc::Receiver<T> {
        let (sender, receiver) = mpsc::channel(capacity);
        *self.newest.lock().unwrap_or_else(PoisonError::into_inner) = Some(sender);
        receiver
    }

    /// Returns the sender of this term; `None`: this process does not lead.
    pub fn sender(&self) -> Option<mpsc::Sender<T>> {
        // An `Option` has no half-done state.
        let newest = self.newest.lock().unwrap_or_else(PoisonError::into_inner);
        newest.clone().filter(|sender| !sender.is_closed())
    }
}

impl<T> Default for TermQueue<T> {
    fn default() -> Self {
        Self {
            newest: Arc::default(),
        }
    }
}

impl<T> Clone for TermQueue<T> {
    fn clone(&self) -> Self {
        Self {
            newest: Arc::clone(&self.newest),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_queue_is_open_as_long_as_the_loop_of_its_term() {
        let queue = TermQueue::default();
        assert!(queue.sender().is_none(), "no term yet");
        let mut first = queue.open(1);
        queue.sender().unwrap().send(1).await.unwrap();
        first.close();
        assert!(queue.sender().is_none(), "it refuses further messages");
        assert_eq!(first.recv().await, Some(1), "and has the earlier ones");
        assert_eq!(first.recv().await, None);
        let mut second = queue.open(1);
        // The loop of the former term may end late.
        drop(first);
        queue.clone().sender().unwrap().send(2).await.unwrap();
        assert_eq!(second.recv().await, Some(2));
        drop(second);
        assert!(queue.sender().is_none());
    }
}
