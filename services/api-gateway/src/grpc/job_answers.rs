//! Conversions that the handlers of jobs share: requests, decisions and the parts of answers.

use admission::jobs::{Answer, Decision};
use gateway_core::Step;
use model::{EvalId, FieldErrors, Timestamp};
use proto::v1;

/// Converts a decision; the answer is `None` if there is no such job.
pub(super) fn step(decision: Decision, eval_id: EvalId) -> Step<Option<Answer>> {
    match decision {
        Decision::Done(answer) => Step::Known(Some(answer)),
        Decision::NoSuchJob => Step::IfFresh(None),
        Decision::Commit(mut proposal) => Step::Commit {
            writes: std::mem::take(&mut proposal.writes),
            answer: Box::new(move |revision| Some(proposal.answer(eval_id, revision))),
        },
    }
}

pub(super) fn eval_text(answer: Answer) -> String {
    answer.eval_id.map_or_else(String::new, |id| id.to_string())
}

/// `None`: never.
pub(super) fn nanoseconds(time: Option<Timestamp>) -> u64 {
    time.map_or(0, |time| time.0)
}

pub(super) fn read_spec(job: Option<v1::Job>) -> Result<v1::Job, FieldErrors> {
    job.ok_or_else(|| {
        let mut errors = FieldErrors::default();
        errors.push("job", "missing: want the job to register");
        errors
    })
}

/// Tells whether a job takes the default node pool of its namespace.
pub(super) fn names_no_pool(spec: &v1::Job) -> bool {
    spec.node_pool.as_deref().is_none_or(str::is_empty)
}
