//! One evaluation as the broker holds it: small, because a million of them are normal weather.

use std::cmp::Reverse;
use std::sync::Arc;

use model::{EvalId, JobKey, JobType, Timestamp};

use crate::event::OpenEval;

/// Where an evaluation is. One held evaluation is in exactly one of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum State {
    /// Can be delivered.
    Ready,
    /// Behind another evaluation of its job.
    Pending,
    /// Waits for its time; does not keep its job's others waiting.
    Delayed,
    /// Was given back; keeps its job's turn.
    BackingOff,
    /// With a worker.
    Unacked,
    /// The worker is done; the outcome has not been seen yet.
    Acked,
    /// Delivered too often; about to be written failed.
    Failing,
    /// Made needless by a newer one; about to be written canceled.
    Superseded,
    /// Waits for capacity.
    Blocked,
}

impl State {
    pub const ALL: [Self; 9] = [
        Self::Ready,
        Self::Pending,
        Self::Delayed,
        Self::BackingOff,
        Self::Unacked,
        Self::Acked,
        Self::Failing,
        Self::Superseded,
        Self::Blocked,
    ];

    /// Tells whether the evaluation has its job's turn: no other of the job is delivered.
    pub(crate) fn has_turn(self) -> bool {
        matches!(
            self,
            Self::Ready | Self::BackingOff | Self::Unacked | Self::Acked | Self::Failing
        )
    }
}

/// What is kept of every open evaluation: ids and small keys, never the evaluation itself.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    /// Shared by all evaluations of the job.
    pub(crate) job: Arc<JobKey>,
    pub(crate) create_index: u64,
    pub(crate) modify_index: u64,
    /// When the state's timer fires; never: it has none.
    pub(crate) due: Timestamp,
    /// Since when it could have been delivered.
    pub(crate) queued_at: Timestamp,
    pub(crate) job_type: JobType,
    pub(crate) priority: u8,
    /// Since it was last admitted.
    pub(crate) deliveries: u8,
    pub(crate) state: State,
}

impl Entry {
    /// Makes an entry that is in `Delayed` without a timer, for [`crate::Broker`] to move on.
    pub(crate) fn new(eval: &OpenEval, job: Arc<JobKey>, now: Timestamp) -> Self {
        Self {
            job,
            create_index: eval.create_index,
            modify_index: eval.modify_index,
            due: Timestamp::NEVER,
            queued_at: now,
            job_type: eval.job_type,
            priority: eval.priority,
            deliveries: 0,
            state: State::Delayed,
        }
    }

    pub(crate) fn ready_key(&self, id: EvalId) -> ReadyKey {
        ReadyKey {
            priority: Reverse(self.priority),
            create_index: self.create_index,
            id,
        }
    }

    pub(crate) fn pending_key(&self, id: EvalId) -> PendingKey {
        PendingKey {
            priority: self.priority,
            modify_index: self.modify_index,
            id,
        }
    }
}

/// Orders what can be delivered: highest priority first, then oldest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ReadyKey {
    pub(crate) priority: Reverse<u8>,
    pub(crate) create_index: u64,
    pub(crate) id: EvalId,
}

/// Orders what waits behind a job's turn: the last is the one to keep, the newest of the highest
/// priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PendingKey {
    pub(crate) priority: u8,
    pub(crate) modify_index: u64,
    pub(crate) id: EvalId,
}
