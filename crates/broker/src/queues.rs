//! Queues: deliverable evaluations in order, the lock of each job, and all timers.

use std::collections::BTreeSet;
use std::sync::Arc;

use model::{EvalId, JobKey, JobType, Timestamp};
use rand::RngExt;
use rand::rngs::StdRng;
use rustc_hash::FxHashMap;

use crate::entry::{PendingKey, ReadyKey};
use crate::event::JobTypes;

/// Deliverable evaluations by job type.
#[derive(Debug, Default)]
pub(crate) struct Ready {
    by_type: [BTreeSet<ReadyKey>; JobType::ALL.len()],
}

impl Ready {
    pub(crate) fn insert(&mut self, job_type: JobType, key: ReadyKey) {
        self.by_type[job_type as usize].insert(key);
    }

    pub(crate) fn remove(&mut self, job_type: JobType, key: &ReadyKey) {
        self.by_type[job_type as usize].remove(key);
    }

    pub(crate) fn len(&self, job_type: JobType) -> usize {
        self.by_type[job_type as usize].len()
    }

    /// Returns the head to deliver among `wanted` types: the one of the highest priority, drawn
    /// evenly where heads of several types share it.
    pub(crate) fn choose(&self, wanted: JobTypes, rng: &mut StdRng) -> Option<(JobType, EvalId)> {
        let heads = JobType::ALL
            .into_iter()
            .filter(|job_type| wanted.contains(*job_type))
            .filter_map(|job_type| Some((job_type, *self.by_type[job_type as usize].first()?)));
        let mut best: Vec<(JobType, ReadyKey)> = Vec::with_capacity(JobType::ALL.len());
        for (job_type, head) in heads {
            match best.first() {
                Some((_, leader)) if head.priority > leader.priority => continue,
                Some((_, leader)) if head.priority < leader.priority => best.clear(),
                _ => {}
            }
            best.push((job_type, head));
        }
        match best.as_slice() {
            [] => None,
            [(job_type, head)] => Some((*job_type, head.id)),
            ties => {
                let (job_type, head) = ties[rng.random_range(0..ties.len())];
                Some((job_type, head.id))
            }
        }
    }
}

/// Lock of a job: one evaluation of it is delivered at a time. Kept as long as the broker holds any
/// evaluation of the job.
#[derive(Debug, Default)]
pub(crate) struct JobLock {
    /// The one evaluation that is ready, delivered or nacked.
    pub(crate) owner: Option<EvalId>,
    /// Pending evaluations; the last is the best.
    pub(crate) pending: BTreeSet<PendingKey>,
    /// The last change of any evaluation of the job.
    pub(crate) wait_index: u64,
    /// The number of evaluations of the job, in any state.
    pub(crate) held: u32,
}

/// The jobs that have an open evaluation.
#[derive(Debug, Default)]
pub(crate) struct JobLocks {
    by_job: FxHashMap<Arc<JobKey>, JobLock>,
}

impl JobLocks {
    /// Counts one more evaluation, and returns the job's shared key.
    pub(crate) fn hold(&mut self, job: &JobKey, modify_index: u64) -> Arc<JobKey> {
        let key = match self.by_job.get_key_value(job) {
            Some((key, _)) => Arc::clone(key),
            None => Arc::new(job.clone()),
        };
        let lock = self.by_job.entry(Arc::clone(&key)).or_default();
        lock.held += 1;
        lock.wait_index = lock.wait_index.max(modify_index);
        key
    }

    /// Counts one less; the last removes the lock.
    pub(crate) fn release(&mut self, job: &JobKey) {
        let lock = self.get_mut(job);
        lock.held -= 1;
        if lock.held == 0 {
            self.by_job.remove(job);
        }
    }

    pub(crate) fn get_mut(&mut self, job: &JobKey) -> &mut JobLock {
        self.by_job
            .get_mut(job)
            .expect("a job with a held evaluation has a lock")
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Arc<JobKey>, &JobLock)> {
        self.by_job.iter()
    }
}

/// Every timer; an evaluation has one at most.
#[derive(Debug, Default)]
pub(crate) struct Timers {
    by_time: BTreeSet<(Timestamp, EvalId)>,
}

impl Timers {
    pub(crate) fn set(&mut self, due: Timestamp, id: EvalId) {
        self.by_time.insert((due, id));
    }

    pub(crate) fn unset(&mut self, due: Timestamp, id: EvalId) {
        self.by_time.remove(&(due, id));
    }

    pub(crate) fn next(&self) -> Option<Timestamp> {
        self.by_time.first().map(|(due, _)| *due)
    }

    /// Returns an evaluation whose timer is due; the timer stays until the state changes.
    pub(crate) fn first_due(&self, now: Timestamp) -> Option<EvalId> {
        self.by_time
            .first()
            .filter(|(due, _)| *due <= now)
            .map(|(_, id)| *id)
    }

    pub(crate) fn len(&self) -> usize {
        self.by_time.len()
    }
}
