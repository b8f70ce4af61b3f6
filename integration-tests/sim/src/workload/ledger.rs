//! Ledger of requests and answers, and its comparison with the history.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use invariants::Fact;
use model::{DeploymentId, JobKey};

use crate::checker::{Checker, Writer, Written};

/// The known outcome of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Acknowledged; the job was last written at this revision.
    Done { job_index: u64 },
    /// Refused by the gateway. Not certain for a retry: the first, unanswered try may have succeeded.
    Refused { reason: String, is_certain: bool },
    /// No answer.
    Unknown(String),
}

/// The effect of a request on its job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// The job has the request's name in its meta.
    Registered,
    Scaled,
    Stopped,
    Purged,
}

/// One request with its outcome.
#[derive(Clone, Debug)]
pub struct Request {
    pub job: JobKey,
    pub request: String,
    pub effect: Effect,
    pub outcome: Outcome,
}

impl Request {
    fn is_done(&self) -> bool {
        matches!(self.outcome, Outcome::Done { .. })
    }

    /// Returns whether it may have succeeded without an acknowledgement.
    fn may_be_done(&self) -> bool {
        match self.outcome {
            Outcome::Done { .. } => false,
            Outcome::Refused { is_certain, .. } => !is_certain,
            Outcome::Unknown(_) => true,
        }
    }

    /// Returns whether the request may have written a job that had the request `before`.
    fn explains(&self, before: &str, written: &Written) -> bool {
        match self.effect {
            Effect::Registered => written.request == self.request,
            Effect::Scaled => !written.is_deleted && written.request == before,
            Effect::Stopped => written.is_stopped && written.request == before,
            Effect::Purged => written.is_deleted,
        }
    }
}

/// All requests. Cheap to clone; clones share the content.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    inner: Arc<Mutex<Inner>>,
}

#[derive(Debug, Default)]
struct Inner {
    asked: Vec<Request>,
    promoted: Vec<DeploymentId>,
    is_over: bool,
}

impl Ledger {
    /// Ends the workload, except for the cleanup.
    pub fn end(&self) {
        self.lock().is_over = true;
    }

    pub fn asked(&self) -> Vec<Request> {
        self.lock().asked.clone()
    }

    pub(super) fn is_over(&self) -> bool {
        self.lock().is_over
    }

    /// Records a request that is about to be sent; returns its number for [`Self::record_outcome`]. Until then its
    /// outcome is unknown: a suite may come to rest while a gateway that has written it is paused.
    pub(super) fn open(&self, job: JobKey, request: String, effect: Effect) -> usize {
        let mut inner = self.lock();
        inner.asked.push(Request {
            job,
            request,
            effect,
            outcome: Outcome::Unknown("no answer yet".to_owned()),
        });
        inner.asked.len() - 1
    }

    /// Records the outcome of a request.
    pub(super) fn record_outcome(&self, number: usize, outcome: Outcome) {
        if let Some(asked) = self.lock().asked.get_mut(number) {
            asked.outcome = outcome;
        }
    }

    /// Records the acknowledged promotion of a deployment.
    pub(super) fn add_promoted(&self, id: DeploymentId) {
        self.lock().promoted.push(id);
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Checks that acknowledged requests are in the history, that only other requests undid them,
    /// and that refused requests are not there.
    pub fn check(&self, checker: &Checker) {
        let asked = self.asked();
        let mut last = BTreeMap::<&JobKey, (&Request, u64)>::new();
        for one in &asked {
            match &one.outcome {
                Outcome::Done { job_index } => {
                    let newest = last.entry(&one.job).or_insert((one, *job_index));
                    if newest.1 <= *job_index {
                        *newest = (one, *job_index);
                    }
                    if let Some(text) = is_missing(one, *job_index, checker) {
                        checker.report(Fact::AcknowledgedIsKept, text);
                    }
                }
                Outcome::Refused { reason, is_certain } => {
                    let is_written = one.effect == Effect::Registered
                        && checker.has_written(&one.job, &one.request);
                    if *is_certain && is_written {
                        let text = format!("{} of {}: {reason}", one.request, one.job);
                        checker.report(Fact::RefusedIsNotDone, text);
                    }
                }
                Outcome::Unknown(_) => {}
            }
        }
        for (job, (own, index)) in last {
            let open: Vec<&Request> = asked
                .iter()
                .filter(|asked| asked.job == *job && asked.may_be_done())
                .collect();
            let mut before = checker.written(job, index).unwrap_or_default().request;
            for (revision, written) in checker.writes_after(job, index) {
                let is_asked = open.iter().any(|asked| asked.explains(&before, &written));
                // Writes of controllers are checked one by one, elsewhere.
                if !is_asked && written.by == Writer::User {
                    let text = format!(
                        "{} of {job} was acknowledged at {index} and undone at {revision}: \
                         {written:?}",
                        own.request
                    );
                    checker.report(Fact::AcknowledgedIsKept, text);
                }
                before = written.request;
            }
        }
        self.check_promotions(checker);
    }

    fn check_promotions(&self, checker: &Checker) {
        let snapshot = checker.snapshot();
        for id in self.lock().promoted.clone() {
            let deployment = snapshot.deployment(id);
            let mut groups = deployment.iter().flat_map(|it| it.value.groups.values());
            if groups.any(model::DeploymentGroup::awaits_promotion) {
                let text = format!("the promotion of deployment {id} was acknowledged");
                checker.report(Fact::AcknowledgedIsKept, text);
            }
        }
    }

    /// Returns the number of requests, and of acknowledged ones.
    pub fn counts(&self) -> (usize, usize) {
        let inner = self.lock();
        let done = inner.asked.iter().filter(|asked| asked.is_done());
        (inner.asked.len(), done.count())
    }
}

/// Describes the state in place of an acknowledged one.
fn is_missing(asked: &Request, index: u64, checker: &Checker) -> Option<String> {
    let written = match asked.effect {
        // A deletion leaves no trace at its revision: after a lost answer the gateway reads that the
        // job is gone, and acknowledges the revision of that read.
        Effect::Purged => checker.written_until(&asked.job, index),
        Effect::Registered | Effect::Scaled | Effect::Stopped => checker.written(&asked.job, index),
    };
    let is_there = written.as_ref().is_some_and(|written| match asked.effect {
        Effect::Registered => written.request == asked.request,
        Effect::Scaled => !written.is_deleted,
        Effect::Stopped => written.is_stopped,
        Effect::Purged => written.is_deleted,
    });
    (!is_there).then(|| {
        format!(
            "{} of {} was acknowledged at {index}, where it is {written:?}",
            asked.request, asked.job
        )
    })
}
