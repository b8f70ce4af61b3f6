//! One term of leadership, with its deadline by the local clock.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::election::fence::Fence;

/// One term of leadership. Cheap to clone; all clones lose it together.
#[derive(Clone, Debug)]
pub struct Leadership {
    fence: Fence,
    term: Arc<Term>,
}

#[derive(Debug)]
struct Term {
    /// No other leader can be elected before this time, by this process's own clock.
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

    /// Returns a token that is cancelled when the term is over for any reason.
    pub fn lost(&self) -> &CancellationToken {
        &self.term.lost
    }

    /// Returns whether this process certainly leads at this moment. Promises to callers depend on it;
    /// writes also carry the fence.
    pub fn is_current(&self) -> bool {
        !self.term.lost.is_cancelled() && Instant::now() < self.deadline()
    }

    /// Returns the time until which this process certainly leads without a renewal.
    pub fn deadline(&self) -> Instant {
        *self
            .term
            .deadline
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
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
