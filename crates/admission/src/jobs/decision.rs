//! Inputs and results that the deciders about jobs share.

use model::{EvalId, Timestamp};
use state::Write;

/// Inputs of one request that no snapshot has; the same in every attempt.
#[derive(Clone, Debug)]
pub struct RequestContext {
    /// The id of the evaluation that the request creates.
    pub eval_id: EvalId,
    pub now: Timestamp,
    /// The trace that the request is part of; empty: none.
    pub trace_parent: String,
}

/// The decision on a registration, a revert or a deregistration, as of one snapshot.
#[derive(Clone, Debug, PartialEq)]
pub enum Decision {
    /// An earlier attempt of the same request has been committed.
    Done(Answer),
    /// There is no such job, so there is nothing to stop.
    NoSuchJob,
    /// To be written in one transaction.
    Commit(Proposal),
}

impl Decision {
    /// Returns whether a commit adds work, which is refused while etcd is nearly full.
    pub fn adds_work(&self) -> bool {
        matches!(self, Self::Commit(proposal) if proposal.adds_work)
    }
}

/// Writes, and the answer's parts that are known before the commit.
#[derive(Clone, Debug, PartialEq)]
pub struct Proposal {
    pub writes: Vec<Write>,
    /// True if an evaluation is among the writes: a job that only has children gets none.
    pub is_evaluated: bool,
    /// True if the job itself is written: its modify index is the commit's revision then.
    pub changed: bool,
    /// The job's modify index when it is not written.
    pub job_modify_index: u64,
    /// The first launch of a periodic job, as of the request.
    pub next_launch: Option<Timestamp>,
    /// True if work is added: a deregistration adds none.
    pub adds_work: bool,
}

impl Proposal {
    /// Returns the answer, given the commit's revision.
    pub fn answer(&self, eval_id: EvalId, revision: u64) -> Answer {
        Answer {
            eval_id: self.is_evaluated.then_some(eval_id),
            index: revision,
            job_modify_index: if self.changed {
                revision
            } else {
                self.job_modify_index
            },
            changed: self.changed,
            next_launch: self.next_launch,
        }
    }
}

/// The answer to a committed request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// `None`: the job only has children.
    pub eval_id: Option<EvalId>,
    /// The revision of the write.
    pub index: u64,
    pub job_modify_index: u64,
    pub changed: bool,
    /// `None`: the job is not launched at times.
    pub next_launch: Option<Timestamp>,
}

impl Answer {
    /// Returns the revision that created the evaluation; 0: there is none.
    pub fn eval_create_index(&self) -> u64 {
        self.eval_id.map_or(0, |_| self.index)
    }
}

/// The decision on an operation of an existing job, as of one snapshot.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// It was committed before, at revision `index`.
    Done { receipt: Receipt, index: u64 },
    /// To be written in one transaction.
    Commit {
        writes: Vec<Write>,
        receipt: Receipt,
        /// True if work is added.
        adds_work: bool,
    },
}

impl Outcome {
    /// Returns whether a commit adds work, which is refused while etcd is nearly full.
    pub fn adds_work(&self) -> bool {
        matches!(
            self,
            Self::Commit {
                adds_work: true,
                ..
            }
        )
    }
}

/// The answer to an operation, beside its revision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Receipt {
    /// The job of the request, or the child that it created.
    pub job_id: String,
    pub eval_id: Option<EvalId>,
    /// That job's modify index; `None`: the revision of the transaction.
    pub job_index: Option<u64>,
}
