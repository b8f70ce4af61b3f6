//! Conversions that the handlers of jobs share: requests, decisions and the parts of answers.

use admission::jobs::{Answer, Decision, SubmittedJob};
use gateway_core::Step;
use model::{EvalId, FieldErrors, Timestamp};
use proto::v1;

use super::query::Api;

impl Api {
    /// Reads a submitted job, in this cluster's region.
    pub(super) fn submitted(
        &self,
        spec: Option<&v1::Job>,
        now: Timestamp,
    ) -> Result<SubmittedJob, FieldErrors> {
        SubmittedJob::read(spec, &self.gateway.config.tls.region, now)
    }
}

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
