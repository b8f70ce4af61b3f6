//! What a leader holds while it leads.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::client::Client;
use crate::election::Fence;
use crate::writer::Writer;

/// One term of leadership. Cheap to clone; all clones lose it together.
#[derive(Clone, Debug)]
pub struct Leadership {
    fence: Fence,
    term: Arc<Term>,
}

#[derive(Debug)]
struct Term {
    /// Until when nobody else can have been elected, by this process's own clock.
    deadline: Mutex<Instant>,
    lost: CancellationToken,
}

impl Leadership {
    pub(super) fn new(fence: Fence, deadline: Instant) -> Self {
        let term = Term {
            deadline: Mutex::new(deadline),
            lost: CancellationToken::new(),
        };
        Self {
            fence,
            term: Arc::new(term),
        }
    }

    pub fn fence(&self) -> &Fence {
        &self.fence
    }

    /// Returns a token that is cancelled when the term is over, for whatever reason.
    pub fn lost(&self) -> &CancellationToken {
        &self.term.lost
    }

    /// Tells whether this process surely leads, at this very moment. Promises to callers hang on
    /// it; writes also carry the fence.
    pub fn is_current(&self) -> bool {
        !self.term.lost.is_cancelled() && Instant::now() < self.deadline()
    }

    /// Returns until when this process surely leads, unless it is prolonged.
    pub fn deadline(&self) -> Instant {
        *self
            .term
            .deadline
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a writer whose every transaction carries this term's fence.
    pub fn writer(&self, client: &Client) -> Writer {
        Writer::fenced(client.clone(), self.clone())
    }

    /// Moves the deadline; a term that is over stays over.
    pub(super) fn prolong(&self, deadline: Instant) {
        let mut current = self
            .term
            .deadline
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        *current = deadline.max(*current);
    }

    /// Ends the term, as far as this process is concerned.
    pub(crate) fn lose(&self) {
        self.term.lost.cancel();
    }
}
