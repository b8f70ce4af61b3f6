//! What the broker wants done.

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
        result: Result<(), Refusal>,
    },
    /// Write that it has failed, and a follow-up that may run after `follow_up_after`.
    ///
    /// Asked for again until the store says that the evaluation is closed.
    Fail {
        eval_id: EvalId,
        follow_up_after: Duration,
    },
    /// Write that newer evaluations have made these needless; at most
    /// [`CANCEL_BATCH`](crate::config::CANCEL_BATCH) of them.
    ///
    /// Asked for again until the store says that they are closed.
    Cancel { eval_ids: Vec<EvalId> },
    /// A delivery came to nothing; for logs and metrics.
    Returned {
        eval_id: EvalId,
        reason: ReturnReason,
        /// When it may be delivered again; `None`: it failed.
        next: Option<Timestamp>,
    },
    /// A delivery was answered; for metrics.
    Settled {
        eval_id: EvalId,
        job_type: JobType,
        /// From the last delivery to the outcome.
        processing: Duration,
        /// From the first moment it could have been delivered to the outcome.
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
    /// How long it could have been delivered and was not.
    pub waited: Duration,
}

/// Why a token opens nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error(
        "the delivery is not outstanding any more: drop the work, another worker has it or will"
    )]
    NotOutstanding,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReturnReason {
    /// The worker gave it back.
    Nacked,
    /// The worker was silent for too long.
    TimedOut,
    /// The worker acked it, and the store still has it open.
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
