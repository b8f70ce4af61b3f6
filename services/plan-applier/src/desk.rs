//! Between the RPCs, which are always served, and the leader's loop, which is there for a term.

use std::sync::{Arc, Mutex, PoisonError};

use applier::Answer;
use model::{Plan, PlanResult};
use tokio::sync::{mpsc, oneshot};
use tracing::Span;

/// Plans that may be on their way to the loop; it takes them as fast as they come.
const SUBMISSIONS_BUFFERED: usize = 256;

/// A plan, and who waits for what becomes of it.
pub(crate) struct Submission {
    pub(crate) plan: Box<Plan>,
    pub(crate) answer: oneshot::Sender<Answer>,
    /// The submission's own; what is done for it is traced below it.
    pub(crate) span: Span,
}

/// Why a plan has no result.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SubmitError {
    #[error("this replica does not lead")]
    NotLeading,
    #[error("too many plans are queued: submit it again later")]
    Overloaded,
    #[error(
        "the term ended before the plan was answered: look up what became of it, or submit it again"
    )]
    TermEnded,
}

/// Hands plans to the loop, while there is one. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(crate) struct Desk {
    term: Arc<Mutex<Option<mpsc::Sender<Submission>>>>,
}

impl Desk {
    /// Opens it for a term; it closes when the term is dropped.
    pub(crate) fn open(&self) -> Term {
        let (sender, submissions) = mpsc::channel(SUBMISSIONS_BUFFERED);
        self.set(Some(sender));
        Term {
            desk: self.clone(),
            submissions,
        }
    }

    /// Hands over a plan and waits for what becomes of it.
    pub(crate) async fn submit(
        &self,
        plan: Box<Plan>,
        span: Span,
    ) -> Result<PlanResult, SubmitError> {
        let sender = self.sender().ok_or(SubmitError::NotLeading)?;
        let (answer, answered) = oneshot::channel();
        let submission = Submission { plan, answer, span };
        sender
            .send(submission)
            .await
            .map_err(|_| SubmitError::NotLeading)?;
        // Kept, it would keep the channel from being seen as closed.
        drop(sender);
        match answered.await {
            Ok(Answer::Result(result)) => Ok(result),
            Ok(Answer::Overloaded) => Err(SubmitError::Overloaded),
            Ok(Answer::Unavailable) | Err(_) => Err(SubmitError::TermEnded),
        }
    }

    pub(crate) fn is_open(&self) -> bool {
        self.sender().is_some()
    }

    fn sender(&self) -> Option<mpsc::Sender<Submission>> {
        self.term
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    fn set(&self, sender: Option<mpsc::Sender<Submission>>) {
        *self.term.lock().unwrap_or_else(PoisonError::into_inner) = sender;
    }
}

/// The loop's side, for one term.
pub(crate) struct Term {
    desk: Desk,
    pub(crate) submissions: mpsc::Receiver<Submission>,
}

impl Term {
    /// Takes no more; what was handed over before is still to be received.
    pub(crate) fn close(&mut self) {
        self.desk.set(None);
        self.submissions.close();
    }
}

impl Drop for Term {
    fn drop(&mut self) {
        self.desk.set(None);
    }
}
