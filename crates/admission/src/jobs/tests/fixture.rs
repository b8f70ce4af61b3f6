//! Stored jobs on which decisions are made and committed, without a store.

use model::{AllocId, EvalId, Job, JobKey, NodeId, SchedulerConfiguration, Timestamp};
use state::{Entity, Key, Snapshot, Write};
use test_kit::{Stored, builders};

use crate::jobs::marks::{self, TagRequest};
use crate::jobs::{
    Decision, DeregisterRequest, JobRefusal, Proposal, RegisterRequest, RequestContext, deregister,
    register,
};

/// The time of every request.
pub(super) const NOW: Timestamp = Timestamp(1_700_000_000_000_000_000);

/// Stored objects, and the count of requested evaluations.
#[derive(Default)]
pub(super) struct Fixture {
    pub(super) stored: Stored,
    evals: u128,
}

impl Fixture {
    pub(super) fn snapshot(&self) -> Snapshot {
        self.stored.snapshot()
    }

    /// Stores the scheduler's configuration; returns the revision.
    pub(super) fn configure(&mut self, reject_job_registration: bool) -> u64 {
        let config = SchedulerConfiguration {
            reject_job_registration,
            ..SchedulerConfiguration::default()
        };
        let entity = Entity::SchedulerConfig(Box::new(config));
        self.stored.put(Key::SchedulerConfig, entity)
    }

    /// Marks a version as stable.
    pub(super) fn mark_stable(&mut self, job: &Job, version: u64) {
        self.stored
            .put(Key::JobStable(job.key(), version), Entity::JobStable);
    }

    /// Places an allocation of a version of a job.
    pub(super) fn place(&mut self, number: u128, job: &Job, version: u64) -> AllocId {
        let stored = self
            .snapshot()
            .job(&job.key())
            .map_or(1, |stored| stored.create_index);
        let mut alloc = builders::allocation(number, job, NodeId::from_random(1));
        alloc.job_version = version;
        alloc.job_create_index = stored;
        let id = alloc.id;
        self.stored.put_alloc(&alloc);
        id
    }

    /// Tags a version, and commits it.
    pub(super) fn tag(&mut self, job: &Job, name: &str, version: Option<u64>) {
        let request = TagRequest {
            job: job.key(),
            name: name.to_owned(),
            description: String::new(),
            version,
        };
        match marks::tag(&self.snapshot(), &request, NOW).unwrap() {
            marks::LabelDecision::Commit { writes, .. } => drop(self.write(&writes)),
            other => panic!("nothing to commit: {other:?}"),
        }
    }

    /// Commits the writes of a proposal.
    ///
    /// # Panics
    /// Panics when a compare does not hold.
    pub(super) fn commit(&mut self, proposal: &Proposal) -> u64 {
        self.write(&proposal.writes)
    }

    /// The same for writes alone.
    pub(super) fn write(&mut self, writes: &[Write]) -> u64 {
        self.stored.commit(writes)
    }

    pub(super) fn context(&mut self) -> RequestContext {
        self.evals += 1;
        let eval_id = EvalId::from_random(1_000 + self.evals);
        RequestContext {
            eval_id,
            now: NOW,
            trace_parent: "00-trace-parent-01".to_owned(),
        }
    }

    pub(super) fn decide(
        &mut self,
        job: &Job,
        request: &RegisterRequest,
    ) -> Result<Decision, JobRefusal> {
        let context = self.context();
        register(&self.snapshot(), job, request, &context)
    }

    /// Registers a job; returns the revision.
    pub(super) fn register(&mut self, job: &Job) -> u64 {
        let decision = self.decide(job, &request()).unwrap();
        self.commit(&proposal(decision))
    }

    pub(super) fn deregister(&mut self, job: &Job, purge: bool) -> u64 {
        let context = self.context();
        let request = DeregisterRequest {
            job: job.key(),
            purge,
            eval_priority: 0,
            no_shutdown_delay: false,
        };
        let decision = deregister(&self.snapshot(), &request, &context).unwrap();
        self.commit(&proposal(decision))
    }

    /// Returns the numbers of the kept versions.
    pub(super) fn kept(&self, key: &JobKey) -> Vec<u64> {
        self.snapshot()
            .job_versions(key)
            .map(|row| row.value.version)
            .collect()
    }
}

/// Returns a request without options.
pub(super) fn request() -> RegisterRequest {
    RegisterRequest {
        max_open_evals: 1_000,
        ..RegisterRequest::default()
    }
}

pub(super) fn proposal(decision: Decision) -> Proposal {
    match decision {
        Decision::Commit(proposal) => proposal,
        other => panic!("nothing to commit: {other:?}"),
    }
}

/// Returns a changed job: the `n`th spec of it.
pub(super) fn changed(job: &Job, n: u32) -> Job {
    let mut job = job.clone();
    job.task_groups[0].count = 100 + n;
    job
}
