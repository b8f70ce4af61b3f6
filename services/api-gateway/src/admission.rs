//! What becomes of a user's request to change a job: refused, already done, or these writes.
//!
//! Pure: the snapshot, the time and the ids come in, a [`Decision`] goes out; `jobs`
//! carries it out. Every decision is one transaction, whose compares make it safe against
//! whatever the snapshot did not show.
//!
//! In reading order: [`mod@register`], [`mod@revert`], [`mod@deregister`] (which purges as well), [`versions`] prunes,
//! [`marks`] says which versions are stable and what they are called,
//! [`request_id`] makes retries find what they did before, [`plan`] tries a registration out;
//! [`mod@dispatch`], [`mod@force`], [`mod@evaluate`] and [`mod@scale`] are what else is done with jobs;
//! `launches` is what they share.

pub mod deregister;
pub mod dispatch;
pub mod evaluate;
pub mod force;
mod launches;
pub mod marks;
pub mod plan;
pub mod register;
pub mod request_id;
pub mod revert;
pub mod scale;
#[cfg(test)]
mod tests;
pub mod versions;

use model::{EvalId, FieldErrors, JobKey, Timestamp};
use state::Snapshot;

use crate::writes::Write;

pub use deregister::{DeregisterRequest, deregister};
pub use register::{Preserve, RegisterRequest, register};
pub use revert::{RevertRequest, revert};

/// What one request brings along from outside: nothing here is decided.
#[derive(Clone, Debug)]
pub struct Stamp {
    /// Names the evaluation, the same in every attempt of one request.
    pub eval_id: EvalId,
    pub now: Timestamp,
    /// The trace that the request is part of; empty: none.
    pub trace_parent: String,
}

/// What a request comes to, as of one snapshot.
#[derive(Clone, Debug, PartialEq)]
pub enum Decision {
    /// An earlier attempt of the same request was carried out.
    Done(Answer),
    /// There is no such job, so there is nothing to stop.
    NoSuchJob,
    /// To be written in one transaction.
    Commit(Proposal),
}

/// Writes, and what to answer once they are made.
#[derive(Clone, Debug, PartialEq)]
pub struct Proposal {
    pub writes: Vec<Write>,
    /// Whether an evaluation is: not for a job that only has children.
    pub is_evaluated: bool,
    /// Whether the job itself is written: its modify index is the commit's revision then.
    pub changed: bool,
    /// The job's modify index when it is not written.
    pub job_modify_index: u64,
}

impl Proposal {
    /// Returns the answer, given the revision at which everything was written.
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
        }
    }
}

/// What a request that was carried out is answered with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// `None`: the job only has children.
    pub eval_id: Option<EvalId>,
    /// The revision of the write.
    pub index: u64,
    pub job_modify_index: u64,
    pub changed: bool,
}

impl Answer {
    /// Returns the revision that created the evaluation; 0: there is none.
    pub fn eval_create_index(&self) -> u64 {
        self.eval_id.map_or(0, |_| self.index)
    }
}

/// What a request about an existing job comes to, as of one snapshot.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// It was carried out before, by revision `index`.
    Done { made: Made, index: u64 },
    /// To be written in one transaction.
    Commit { writes: Vec<Write>, made: Made },
}

/// What such a request is answered with, beside its revision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Made {
    /// The job that it is about, or the child that it made.
    pub job_id: String,
    pub eval_id: Option<EvalId>,
    /// That job's modify index; `None`: the revision of the transaction.
    pub job_index: Option<u64>,
}

/// Why a request is not carried out. Final only when the snapshot was as new as the request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error(transparent)]
    Invalid(#[from] FieldErrors),
    #[error(transparent)]
    Version(#[from] marks::Refusal),
    /// Source: Nomad's texts, which its command line and Terraform look for.
    #[error("Enforcing job modify index {want}: {found}")]
    CheckIndex { want: u64, found: FoundIndex },
    #[error(
        "{open} evaluations wait to be looked at, or for room, as many as this cluster takes: try \
         again later"
    )]
    Overloaded { open: usize },
    /// Source: Nomad's text.
    #[error(
        "Job registration, dispatch, and scale are disabled by the scheduler configuration: \
         reject_job_registration is true"
    )]
    Rejected,
    /// Source of the texts: Nomad's.
    #[error("{message}")]
    State { message: String },
    #[error("no job {job_id:?} in namespace {namespace:?}")]
    NoSuchJob { namespace: String, job_id: String },
    /// A dry run's: a registration is carried out, and its evaluation fails.
    #[error("the job could be registered, but its evaluation would fail: {reason}")]
    Unschedulable { reason: String },
}

impl Refusal {
    /// The job is not as it has to be for this.
    fn state(message: impl Into<String>) -> Self {
        let message = message.into();
        Self::State { message }
    }

    fn no_such_job(key: &JobKey) -> Self {
        Self::NoSuchJob {
            namespace: key.namespace.to_string(),
            job_id: key.job_id.to_string(),
        }
    }
}

/// What stood in the way of a check index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FoundIndex {
    #[error("job already exists")]
    Exists,
    #[error("job does not exist")]
    Missing,
    #[error("job exists with conflicting job modify index: {0}")]
    Other(u64),
}

/// Refuses what makes an evaluation when too many are open already.
///
/// # Errors
/// [`Refusal::Overloaded`].
fn refuse_beyond(snapshot: &Snapshot, max_open_evals: usize) -> Result<(), Refusal> {
    let open = snapshot.open_eval_count();
    if open >= max_open_evals {
        return Err(Refusal::Overloaded { open });
    }
    Ok(())
}

/// Reads the priority that a request wants its evaluation to have; 0: the job's own.
///
/// # Errors
/// More than 100.
pub fn eval_priority(wanted: u32) -> Result<Option<u8>, FieldErrors> {
    match u8::try_from(wanted) {
        Ok(0) => Ok(None),
        Ok(priority) if priority <= MAX_PRIORITY => Ok(Some(priority)),
        _ => {
            let mut errors = FieldErrors::default();
            errors.push(
                "eval_priority",
                format!("{wanted} is too high: want 1 to {MAX_PRIORITY}, or 0 for the job's own"),
            );
            Err(errors)
        }
    }
}

/// Source: Nomad's default of `job_max_priority`.
const MAX_PRIORITY: u8 = 100;
