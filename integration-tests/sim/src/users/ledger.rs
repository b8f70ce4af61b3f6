//! What was asked, what was answered, and whether both are in the history.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use invariants::Fact;
use model::{DeploymentId, JobKey};

use crate::watcher::{By, Watcher, Written};

/// What is known of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It was done; the job was last written at this revision.
    Done { job_index: u64 },
    /// It was not done, the gateway says. Of one that was sent before, and not answered, nothing
    /// is known all the same.
    Refused { why: String, is_certain: bool },
    /// Nobody knows.
    Unknown(String),
}

/// What a request does to a job if it is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// The job carries the request's name.
    Registered,
    Scaled,
    Stopped,
    Purged,
}

/// One request, with what became of it.
#[derive(Clone, Debug)]
pub struct Asked {
    pub job: JobKey,
    pub request: String,
    pub effect: Effect,
    pub outcome: Outcome,
}

impl Asked {
    fn is_done(&self) -> bool {
        matches!(self.outcome, Outcome::Done { .. })
    }

    /// Tells whether it may have been done although nobody says so.
    fn may_be_done(&self) -> bool {
        match self.outcome {
            Outcome::Done { .. } => false,
            Outcome::Refused { is_certain, .. } => !is_certain,
            Outcome::Unknown(_) => true,
        }
    }

    /// Tells whether the request may be what wrote a job that carried `before`.
    fn explains(&self, before: &str, written: &Written) -> bool {
        match self.effect {
            Effect::Registered => written.request == self.request,
            Effect::Scaled => !written.is_deleted && written.request == before,
            Effect::Stopped => written.is_stopped && written.request == before,
            Effect::Purged => written.is_deleted,
        }
    }
}

/// What was asked so far. Cheap to clone; clones are the same.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    inner: Arc<Mutex<Inner>>,
}

#[derive(Debug, Default)]
struct Inner {
    asked: Vec<Asked>,
    promoted: Vec<DeploymentId>,
    is_over: bool,
}

impl Ledger {
    /// Has nothing more asked but what brings everything to its end.
    pub fn end(&self) {
        self.lock().is_over = true;
    }

    pub fn asked(&self) -> Vec<Asked> {
        self.lock().asked.clone()
    }

    pub(super) fn is_over(&self) -> bool {
        self.lock().is_over
    }

    pub(super) fn add(&self, asked: Asked) {
        self.lock().asked.push(asked);
    }

    /// Notes that a promotion of a whole deployment was acknowledged.
    pub(super) fn add_promoted(&self, id: DeploymentId) {
        self.lock().promoted.push(id);
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks whether everything that was acknowledged is in the history, nothing undid it that
    /// nobody asked for, and nothing that was refused is there.
    pub fn check(&self, watcher: &Watcher) {
        let asked = self.asked();
        let mut last = BTreeMap::<&JobKey, (&Asked, u64)>::new();
        for one in &asked {
            match &one.outcome {
                Outcome::Done { job_index } => {
                    let newest = last.entry(&one.job).or_insert((one, *job_index));
                    if newest.1 <= *job_index {
                        *newest = (one, *job_index);
                    }
                    if let Some(text) = is_missing(one, *job_index, watcher) {
                        watcher.report(Fact::AcknowledgedIsKept, text);
                    }
                }
                Outcome::Refused { why, is_certain } => {
                    let is_written = one.effect == Effect::Registered
                        && watcher.has_written(&one.job, &one.request);
                    if *is_certain && is_written {
                        let text = format!("{} of {}: {why}", one.request, one.job);
                        watcher.report(Fact::RefusedIsNotDone, text);
                    }
                }
                Outcome::Unknown(_) => {}
            }
        }
        for (job, (own, index)) in last {
            let open: Vec<&Asked> = asked
                .iter()
                .filter(|asked| asked.job == *job && asked.may_be_done())
                .collect();
            let mut before = watcher.written(job, index).unwrap_or_default().request;
            for (revision, written) in watcher.writes_after(job, index) {
                let is_asked = open.iter().any(|asked| asked.explains(&before, &written));
                // Whether those had reason to is held against each such write on its own.
                if !is_asked && written.by == By::User {
                    let text = format!(
                        "{} of {job} was acknowledged at {index} and undone at {revision}: \
                         {written:?}",
                        own.request
                    );
                    watcher.report(Fact::AcknowledgedIsKept, text);
                }
                before = written.request;
            }
        }
        self.check_promotions(watcher);
    }

    fn check_promotions(&self, watcher: &Watcher) {
        let snapshot = watcher.snapshot();
        for id in self.lock().promoted.clone() {
            let deployment = snapshot.deployment(id);
            let mut groups = deployment.iter().flat_map(|it| it.value.groups.values());
            if groups.any(model::DeploymentGroup::awaits_promotion) {
                let text = format!("the promotion of deployment {id} was acknowledged");
                watcher.report(Fact::AcknowledgedIsKept, text);
            }
        }
    }

    /// How many requests there were, and how many were acknowledged.
    pub fn counts(&self) -> (usize, usize) {
        let inner = self.lock();
        let done = inner.asked.iter().filter(|asked| asked.is_done());
        (inner.asked.len(), done.count())
    }
}

/// Says what is there instead of what was acknowledged.
fn is_missing(asked: &Asked, index: u64, watcher: &Watcher) -> Option<String> {
    let written = watcher.written(&asked.job, index);
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
