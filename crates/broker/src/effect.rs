//! Effects: deliveries, replies and writes that the broker requests.

use std::time::Duration;

use model::{EvalId, JobType, Timestamp};

use crate::event::{RequestId, SessionId};
use crate::token::Token;

#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Send it to the worker.
    Deliver(Delivery),
    /// Answer a waiting RPC.
    Reply {
        request: RequestId,
        result: Result<(), NotOutstanding>,
    },
    /// Write the evaluation failed, with a follow-up that may run after `follow_up_after`.
    ///
    /// Requested again until the store shows the evaluation closed.
    Fail {
        eval_id: EvalId,
        follow_up_after: Duration,
    },
    /// Write superseded evaluations canceled, at most
    /// [`CANCEL_BATCH`](crate::config::CANCEL_BATCH) of them.
    ///
    /// Requested again until the store shows them closed.
    Cancel { eval_ids: Vec<EvalId> },
    /// A delivery ended without an outcome; for logs and metrics.
    Returned {
        eval_id: EvalId,
        reason: ReturnReason,
        /// The time of the next delivery; `None`: the evaluation failed.
        next: Option<Timestamp>,
    },
    /// A delivery was answered; for metrics.
    Answered {
        eval_id: EvalId,
        job_type: JobType,
        /// From the last delivery to the outcome.
        processing: Duration,
        /// From the first moment that it was deliverable to the outcome.
        response: Duration,
    },
}

/// One evaluation on its way to one worker.
#[derive(Clone, Debug, PartialEq)]
pub struct Delivery {
    pub session: SessionId,
    pub eval_id: EvalId,
    pub token: Token,
    pub job_type: JobType,
    /// The worker's snapshot must be at this revision or later: the last change of any evaluation
    /// of the job, so of the job's last plan too.
    pub wait_index: u64,
    /// 1 for the first.
    pub attempt: u8,
    /// The time for which the evaluation was deliverable before this delivery.
    pub waited: Duration,
}

/// The answer of a worker is rejected: its delivery has timed out, was answered, or is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the delivery is not outstanding any more: drop the work, another worker has it or will")]
pub struct NotOutstanding;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReturnReason {
    /// The worker nacked it.
    Nacked,
    /// The worker neither answered nor extended it in time.
    TimedOut,
    /// The worker acked it, but the store shows no outcome.
    NoOutcome,
}

impl ReturnReason {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Nacked => "nacked",
            Self::TimedOut => "timed_out",
            Self::NoOutcome => "no_outcome",
        }
    }
}
