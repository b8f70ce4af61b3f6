//! The queue of submitted plans between the RPCs and the leader's loop, which exists for one term.

use applier::Answer;
use model::{Plan, PlanResult};
use service_host::TermQueue;
use tokio::sync::{mpsc, oneshot};
use tracing::Span;

/// Plans buffered before the loop, which receives them without delay.
const SUBMISSIONS_BUFFERED: usize = 256;

/// A plan with the channel for its answer.
pub(crate) struct Submission {
    pub(crate) plan: Box<Plan>,
    pub(crate) answer: oneshot::Sender<Answer>,
    /// The span of the submission, the parent of the spans of its verification and commit.
    pub(crate) span: Span,
}

/// A submission without a result.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SubmitError {
    #[error("this replica does not lead")]
    NotLeading,
    #[error("too many plans are queued: submit it again later")]
    Overloaded,
    #[error(
        "the term ended before the plan was answered: read its outcome from the store, or submit it again"
    )]
    TermEnded,
}

/// Passes plans to the leader's loop while this replica leads. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct SubmissionQueue {
    term: TermQueue<Submission>,
}

impl SubmissionQueue {
    /// Opens the queue for a term; it closes when the receiver is dropped or closed.
    pub(crate) fn open(&self) -> mpsc::Receiver<Submission> {
        self.term.open(SUBMISSIONS_BUFFERED)
    }

    /// Submits a plan and waits for its result.
    pub(crate) async fn submit(
        &self,
        plan: Box<Plan>,
        span: Span,
    ) -> Result<PlanResult, SubmitError> {
        let sender = self.term.sender().ok_or(SubmitError::NotLeading)?;
        let (answer, answered) = oneshot::channel();
        let submission = Submission { plan, answer, span };
        sender
            .send(submission)
            .await
            .map_err(|_| SubmitError::NotLeading)?;
        // A kept sender would keep the channel open.
        drop(sender);
        match answered.await {
            Ok(Answer::Result(result)) => Ok(result),
            Ok(Answer::Overloaded) => Err(SubmitError::Overloaded),
            Ok(Answer::Unavailable) | Err(_) => Err(SubmitError::TermEnded),
        }
    }

    pub(crate) fn is_open(&self) -> bool {
        self.term.sender().is_some()
    }
}
