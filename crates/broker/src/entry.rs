//! An evaluation in the broker: small, because a million of them is a normal load.

use std::cmp::Reverse;
use std::sync::Arc;

use model::{EvalId, JobKey, JobType, Timestamp};

use crate::event::OpenEval;

/// The state of an evaluation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum State {
    /// Deliverable.
    Ready,
    /// Behind another evaluation of its job.
    Pending,
    /// Delayed until a point in time; does not hold its job's lock.
    Delayed,
    /// Returned and delayed; holds its job's lock.
    BackingOff,
    /// Delivered to a worker.
    Unacked,
    /// The worker has acked it; the store does not show the outcome yet.
    Acked,
    /// Delivered too often: the failure is being written.
    Failing,
    /// Superseded by a newer one: the cancellation is being written.
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

    /// Tells whether the evaluation holds its job's lock: no other of the job is delivered.
    pub(crate) fn holds_lock(self) -> bool {
        matches!(
            self,
            Self::Ready | Self::BackingOff | Self::Unacked | Self::Acked | Self::Failing
        )
    }
}

/// The broker's record of an open evaluation: ids and small keys, never the evaluation itself.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    /// Shared by all evaluations of the job.
    pub(crate) job: Arc<JobKey>,
    pub(crate) create_index: u64,
    pub(crate) modify_index: u64,
    /// The time at which the state's timer fires; never: the state has no timer.
    pub(crate) due: Timestamp,
    /// The time since which it is deliverable.
    pub(crate) queued_at: Timestamp,
    pub(crate) job_type: JobType,
    pub(crate) priority: u8,
    /// The number of deliveries since it was last admitted.
    pub(crate) deliveries: u8,
    pub(crate) state: State,
}

impl Entry {
    /// Returns an entry in state `Delayed` without a timer; [`crate::Broker`] moves it on.
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

/// Orders deliverable evaluations: highest priority first, then oldest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ReadyKey {
    pub(crate) priority: Reverse<u8>,
    pub(crate) create_index: u64,
    pub(crate) id: EvalId,
}

/// Orders the pending evaluations of a job: the last one is kept, the newest of the highest priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PendingKey {
    pub(crate) priority: u8,
    pub(crate) modify_index: u64,
    pub(crate) id: EvalId,
}
