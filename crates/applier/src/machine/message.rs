//! Events, effects and answers of the machine.

use std::sync::Arc;

use model::{EvalId, Plan, PlanResult};

use crate::pending::Pending;
use crate::piece::Piece;
use crate::verify::verdict::PlanVerification;

/// Identifies one submitted plan; chosen by the caller, unique.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(pub u64);

/// Identifies one transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CommitId(pub u64);

/// An input of the machine.
#[derive(Clone, Debug)]
pub enum Event {
    /// A worker's plan. The replica has reached the plan's snapshot.
    Submit {
        ticket: Ticket,
        plan: Box<Plan>,
    },
    /// The answer to [`Effect::Verify`].
    Verified {
        ticket: Ticket,
        verdict: PlanVerification,
    },
    Committed {
        commit: CommitId,
        revision: u64,
    },
    /// A compare failed, so nothing of the transaction was written as of `revision`.
    Conflict {
        commit: CommitId,
        revision: u64,
    },
    /// The store refused the transaction: nothing was written, and a retry would be refused again.
    /// `revision` is the replica's.
    Refused {
        commit: CommitId,
        revision: u64,
        reason: String,
    },
    /// The outcome of the transaction is unknown, or its fence has failed: the next leader starts from
    /// the stored state.
    Deposed,
    /// The replica has reached the revision of [`crate::Applier::wanted_revision`].
    Replica,
}

/// An output of the machine, to be executed by the loop.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Verify `plan` against the replica of this step and the pending writes.
    Verify {
        ticket: Ticket,
        plan: Arc<Plan>,
        pending: Arc<Pending>,
    },
    /// Write `pieces` in one transaction, fenced by the election.
    Commit {
        commit: CommitId,
        pieces: Vec<Arc<Piece>>,
    },
    /// Write all or none of `pieces`, which exceed one transaction, as described in
    /// [`crate::staged`]. The last revision is that of the commit.
    CommitAllAtOnce {
        commit: CommitId,
        eval_id: EvalId,
        pieces: Vec<Arc<Piece>>,
    },
    Answer {
        ticket: Ticket,
        answer: Answer,
    },
    /// Stop leading: see [`Event::Deposed`].
    StepDown,
}

/// The answer to a worker.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    Result(PlanResult),
    /// Too many plans are queued; nothing was written.
    Overloaded,
    /// No longer the leader. The worker has to read the outcome from the store.
    Unavailable,
}

/// Returns the answer to a plan of which nothing is committed.
pub(super) fn refusal(ticket: Ticket, reason: String, refresh_index: u64) -> Effect {
    let result = PlanResult {
        refused: Some(reason),
        refresh_index,
        ..PlanResult::default()
    };
    Effect::Answer {
        ticket,
        answer: Answer::Result(result),
    }
}
