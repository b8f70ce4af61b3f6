//! A stored world that decisions are made on and carried out in, without a store.

use model::{AllocId, EvalId, Job, JobKey, NodeId, SchedulerConfiguration, Timestamp};
use state::{Change, Entity, Key, Snapshot};
use test_kit::builders;

use crate::admission::marks::{self, TagRequest};
use crate::admission::{
    Decision, DeregisterRequest, Proposal, Refusal, RegisterRequest, Stamp, deregister, register,
};
use crate::testing::Stored;
use crate::writes::Write;

/// When everything happens.
pub(super) const NOW: Timestamp = Timestamp(1_700_000_000_000_000_000);

/// What is stored, and a count of the evaluations asked for.
#[derive(Default)]
pub(super) struct World {
    pub(super) stored: Stored,
    evals: u128,
}

impl World {
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

    /// Gives a version a name, and carries it out.
    pub(super) fn tag(&mut self, job: &Job, name: &str, version: Option<u64>) {
        let request = TagRequest {
            job: job.key(),
            name: name.to_owned(),
            description: String::new(),
            version,
        };
        match marks::tag(&self.snapshot(), &request, NOW).unwrap() {
            marks::Change::Commit { writes, .. } => drop(self.write(&writes)),
            other => panic!("nothing to commit: {other:?}"),
        }
    }

    /// Carries out writes as the store would: at one revision, if every compare holds.
    ///
    /// # Panics
    /// When a compare does not hold.
    pub(super) fn commit(&mut self, proposal: &Proposal) -> u64 {
        self.write(&proposal.writes)
    }

    /// The same for writes alone.
    pub(super) fn write(&mut self, writes: &[Write]) -> u64 {
        let revision = self.stored.next_revision();
        let snapshot = self.snapshot();
        let mut changes = Vec::new();
        for write in writes {
            match write.clone() {
                Write::Create { key, entity } => {
                    assert_eq!(indexes(&snapshot, &key), None, "{key:?} exists");
                    let (create_index, modify_index) = (revision, revision);
                    changes.push(Change::Put {
                        key,
                        entity,
                        create_index,
                        modify_index,
                    });
                }
                Write::Update {
                    key,
                    modify_index,
                    entity,
                } => {
                    let (created, modified) = indexes(&snapshot, &key).expect("it exists");
                    assert_eq!(modified, modify_index, "{key:?} changed");
                    changes.push(Change::Put {
                        key,
                        entity,
                        create_index: created,
                        modify_index: revision,
                    });
                }
                Write::Delete { key, modify_index } => {
                    let (_, modified) = indexes(&snapshot, &key).expect("it exists");
                    assert_eq!(modified, modify_index, "{key:?} changed");
                    changes.push(Change::Delete { key });
                }
                Write::RequireUnchanged { key, modify_index } => {
                    let (_, modified) = indexes(&snapshot, &key).expect("it exists");
                    assert_eq!(modified, modify_index, "{key:?} changed");
                }
                Write::RequireAbsent { key } => {
                    assert_eq!(indexes(&snapshot, &key), None, "{key:?} exists");
                }
            }
        }
        self.stored.apply(revision, changes);
        revision
    }

    pub(super) fn stamp(&mut self) -> Stamp {
        self.evals += 1;
        let eval_id = EvalId::from_random(1_000 + self.evals);
        Stamp {
            eval_id,
            now: NOW,
            trace_parent: "00-trace-parent-01".to_owned(),
        }
    }

    pub(super) fn decide(
        &mut self,
        job: &Job,
        request: &RegisterRequest,
    ) -> Result<Decision, Refusal> {
        let stamp = self.stamp();
        register(&self.snapshot(), job, request, &stamp)
    }

    /// Registers a job and carries it out; returns the revision.
    pub(super) fn register(&mut self, job: &Job) -> u64 {
        let decision = self.decide(job, &request()).unwrap();
        self.commit(&proposal(decision))
    }

    pub(super) fn deregister(&mut self, job: &Job, purge: bool) -> u64 {
        let stamp = self.stamp();
        let request = DeregisterRequest {
            job: job.key(),
            purge,
            eval_priority: 0,
        };
        let decision = deregister(&self.snapshot(), &request, &stamp).unwrap();
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

/// Returns a request with nothing special about it.
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

fn indexes(snapshot: &Snapshot, key: &Key) -> Option<(u64, u64)> {
    match key {
        Key::Job(job) => snapshot
            .job(job)
            .map(|row| (row.create_index, row.modify_index)),
        Key::JobVersion(job, version) => snapshot
            .job_version(job, *version)
            .map(|row| (row.create_index, row.modify_index)),
        Key::JobStable(job, version) => snapshot
            .stable_index(job, *version)
            .map(|index| (index, index)),
        Key::JobTags(job) => snapshot
            .job_tags(job)
            .map(|row| (row.create_index, row.modify_index)),
        Key::Eval(id) => snapshot
            .eval(*id)
            .map(|row| (row.create_index, row.modify_index)),
        Key::SchedulerConfig => snapshot
            .stored_scheduler_config()
            .map(|row| (row.create_index, row.modify_index)),
        Key::NodePool(name) => snapshot
            .node_pool(name)
            .map(|row| (row.create_index, row.modify_index)),
        Key::Namespace(name) => snapshot
            .namespace(name)
            .map(|row| (row.create_index, row.modify_index)),
        Key::PlanCommit(eval_id) => snapshot
            .plan_commit(*eval_id)
            .map(|row| (row.create_index, row.modify_index)),
        Key::PlanPiece(..) => None,
        Key::PeriodicLaunch(job) => snapshot
            .periodic_launch(job)
            .map(|row| (row.create_index, row.modify_index)),
        Key::DispatchToken(parent, token) => snapshot
            .dispatch_token(parent, token)
            .map(|row| (row.create_index, row.modify_index)),
        Key::ScalingEvents(job, group) => snapshot
            .scaling_events(job, group)
            .map(|row| (row.create_index, row.modify_index)),
        Key::JobTally(job) => snapshot
            .job_tally(job)
            .map(|row| (row.create_index, row.modify_index)),
        Key::Alloc(id) => snapshot
            .alloc(*id)
            .map(|view| (view.create_index, view.alloc_modify_index)),
        other => panic!("admission does not write {other:?}"),
    }
}
