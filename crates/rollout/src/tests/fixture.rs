//! A replica, a watcher and a clock that scripts drive: only this file knows the API.

use std::time::Duration;

use model::{
    AllocClient, AllocId, Allocation, ClientStatus, Deployment, DeploymentGroup, DeploymentHealth,
    DeploymentId, DeploymentStatus, EvalId, EvalStatus, Evaluation, Indexed, Job, JobKey, NodeId,
    NodePool, Timestamp,
};
use state::{Change, Entity, Key, Snapshot, State, Write};
use test_kit::builders::{allocation, evaluation, rolling_update, service};

use crate::{Action, Config, Rollout};

pub(super) const MINUTE: Duration = Duration::from_secs(60);

pub(super) struct Fixture {
    pub(super) rollout: Rollout,
    pub(super) replica: State,
    pub(super) revision: u64,
    pub(super) now: Timestamp,
    ids: u128,
    /// Everything that was asked to be written, until it is taken.
    pub(super) actions: Vec<Action>,
}

pub(super) fn deployment_id() -> DeploymentId {
    DeploymentId::from_random(1)
}

pub(super) fn alloc_id(number: u32) -> AllocId {
    AllocId::from_random(number.into())
}

pub(super) fn key() -> JobKey {
    JobKey::new("default", "web")
}

/// Job `web` with one group `web` of `count`, updated one at a time, progress deadline 10 min.
pub(super) fn job(count: u32) -> Job {
    let mut job = service("web", count);
    job.task_groups[0].update = Some(rolling_update(1));
    job
}

/// The group as a deployment has it.
pub(super) fn group(desired_total: u32) -> DeploymentGroup {
    DeploymentGroup {
        progress_deadline: 10 * MINUTE,
        desired_total,
        ..DeploymentGroup::default()
    }
}

impl Fixture {
    /// Job `web` at version 0 and nothing else; the clock stands at its submission.
    pub(super) fn new(job: &Job) -> Self {
        let mut fixture = Self {
            rollout: Rollout::new(Config::default()),
            replica: State::default(),
            revision: 0,
            now: Timestamp::from_millis(1_000_000),
            ids: 1_000,
            actions: Vec::new(),
        };
        fixture.put_job(job);
        fixture
    }

    /// The middle of a rollout of `group`, of which `placed` allocations are placed.
    pub(super) fn deploying(job: &Job, group: DeploymentGroup, placed: u32) -> Self {
        let mut fixture = Self::new(job);
        fixture.put_deployment(group);
        for number in 1..=placed {
            fixture.place(number);
        }
        fixture.scheduled();
        fixture
    }

    pub(super) fn put_job(&mut self, job: &Job) {
        let version = (
            Key::JobVersion(job.key(), job.version),
            Entity::JobVersion(job.clone().into()),
        );
        self.write(vec![
            (Key::Job(job.key()), Entity::Job(job.clone().into())),
            version,
        ]);
    }

    pub(super) fn mark_stable(&mut self, version: u64) {
        self.write(vec![(Key::JobStable(key(), version), Entity::JobStable)]);
    }

    pub(super) fn put_deployment(&mut self, group: DeploymentGroup) {
        let job = self
            .snapshot()
            .job(&key())
            .cloned()
            .expect("the job is there");
        let deployment = Deployment {
            id: deployment_id(),
            job: key(),
            job_version: job.value.version,
            job_modify_index: job.modify_index,
            job_create_index: job.create_index,
            status: DeploymentStatus::Running,
            status_description: "Deployment is running".to_owned(),
            groups: [("web".to_owned(), group)].into(),
            eval_priority: 70,
            create_time: self.now,
            modify_time: self.now,
        };
        self.write_deployment(deployment);
    }

    pub(super) fn change_deployment(&mut self, change: impl FnOnce(&mut Deployment)) {
        let mut deployment = self.deployment();
        change(&mut deployment);
        deployment.modify_time = self.now;
        self.write_deployment(deployment);
    }

    fn write_deployment(&mut self, deployment: Deployment) {
        self.write(vec![(
            Key::Deployment(deployment.id),
            Entity::Deployment(deployment.into()),
        )]);
    }

    pub(super) fn deployment(&self) -> Deployment {
        self.snapshot()
            .deployment(deployment_id())
            .expect("deployed")
            .value
            .clone()
    }

    /// The plan-applier places an allocation of the deployment.
    pub(super) fn place(&mut self, number: u32) {
        let job = self
            .snapshot()
            .job(&key())
            .expect("the job is there")
            .value
            .clone();
        let alloc = Allocation {
            deployment_id: Some(deployment_id()),
            create_time: self.now,
            modify_time: self.now,
            ..allocation(number.into(), &job, NodeId::from_random(1))
        };
        self.put_alloc(alloc);
    }

    pub(super) fn change_alloc(&mut self, number: u32, change: impl FnOnce(&mut Allocation)) {
        let mut alloc = (*self
            .snapshot()
            .alloc(alloc_id(number))
            .expect("placed")
            .alloc)
            .clone();
        change(&mut alloc);
        self.put_alloc(alloc);
    }

    fn put_alloc(&mut self, alloc: Allocation) {
        self.write(vec![(Key::Alloc(alloc.id), Entity::Alloc(alloc.into()))]);
    }

    /// The node reports the health of an allocation.
    pub(super) fn report(&mut self, number: u32, healthy: bool) {
        let health = DeploymentHealth {
            healthy,
            time: self.now,
            deployment_id: Some(deployment_id()),
        };
        let status = if healthy {
            ClientStatus::Running
        } else {
            ClientStatus::Failed
        };
        self.put_client(number, status, Some(health));
    }

    pub(super) fn put_client(
        &mut self,
        number: u32,
        status: ClientStatus,
        health: Option<DeploymentHealth>,
    ) {
        let client = AllocClient {
            status,
            health,
            modify_time: self.now,
            ..AllocClient::default()
        };
        self.write(vec![(
            Key::AllocClient(alloc_id(number)),
            Entity::AllocClient(client.into()),
        )]);
    }

    /// A scheduler has looked at everything so far.
    pub(super) fn scheduled(&mut self) {
        let looked = Evaluation {
            status: EvalStatus::Complete,
            snapshot_index: self.revision,
            ..self.eval()
        };
        self.put_eval(looked);
    }

    /// A fresh evaluation of the job, not stored.
    pub(super) fn eval(&mut self) -> Evaluation {
        self.ids += 1;
        evaluation(self.ids, &job(1))
    }

    pub(super) fn put_eval(&mut self, eval: Evaluation) {
        self.write(vec![(Key::Eval(eval.id), Entity::Eval(eval.into()))]);
    }

    pub(super) fn delete(&mut self, key: Key) {
        self.apply(vec![Change::Delete { key }]);
    }

    fn write(&mut self, objects: Vec<(Key, Entity)>) {
        let next = self.revision + 1;
        let changes = objects.into_iter().map(|(key, entity)| {
            let created = self.create_index(&key).unwrap_or(next);
            Change::Put {
                key,
                entity,
                create_index: created,
                modify_index: next,
            }
        });
        let changes = changes.collect();
        self.apply(changes);
    }

    fn create_index(&self, key: &Key) -> Option<u64> {
        let snapshot = self.snapshot();
        match key {
            Key::Job(key) => snapshot.job(key).map(|job| job.create_index),
            Key::Eval(id) => snapshot.eval(*id).map(|eval| eval.create_index),
            Key::Deployment(id) => snapshot.deployment(*id).map(|found| found.create_index),
            _ => None,
        }
    }

    fn apply(&mut self, changes: Vec<Change>) {
        self.revision += 1;
        self.replica.apply(self.revision, changes.clone());
        self.rollout.note(&changes, &self.snapshot());
        self.step();
    }

    pub(super) fn snapshot(&self) -> Snapshot {
        self.replica.snapshot()
    }

    pub(super) fn step(&mut self) {
        let snapshot = self.snapshot();
        let ids = &mut self.ids;
        let mut next_id = || {
            *ids += 1;
            EvalId::from_random(*ids)
        };
        let actions = self.rollout.step(self.now, &snapshot, &mut next_id);
        self.actions.extend(actions);
    }

    /// Lets time pass, stepping whenever the watcher asks for it.
    pub(super) fn pass(&mut self, duration: Duration) {
        let end = self.now.plus(duration);
        while let Some(due) = self.rollout.next_deadline().filter(|due| *due <= end) {
            self.now = due.max(self.now);
            self.step();
            if !self.actions.is_empty() {
                break;
            }
        }
        self.now = end;
    }

    /// A new leader takes over.
    pub(super) fn elect(&mut self) {
        self.rollout = Rollout::new(Config::default());
        self.rollout.resync(&self.snapshot());
        self.step();
    }

    /// Takes the only action.
    pub(super) fn action(&mut self) -> Action {
        assert_eq!(self.actions.len(), 1, "{:?}", self.actions);
        self.actions.remove(0)
    }

    /// Takes the only action, writes it, and returns it.
    pub(super) fn perform(&mut self) -> Action {
        let action = self.action();
        self.write_action(&action);
        action
    }

    /// Writes an action.
    pub(super) fn write_action(&mut self, action: &Action) {
        self.commit(&action.writes);
    }

    /// Writes the objects of a transaction; returns its revision.
    pub(super) fn commit(&mut self, writes: &[Write]) -> u64 {
        let stored = |write: &Write| Some((write.key().clone(), write.entity()?.clone()));
        self.write(writes.iter().filter_map(stored).collect());
        self.revision
    }

    pub(super) fn put_pool(&mut self, pool: NodePool) {
        let key = Key::NodePool(pool.name.clone());
        self.write(vec![(key, Entity::NodePool(pool.into()))]);
    }

    pub(super) fn stored_deployment(&self) -> Indexed<Deployment> {
        let snapshot = self.snapshot();
        Indexed::clone(snapshot.deployment(deployment_id()).expect("deployed"))
    }

    pub(super) fn next_eval_id(&mut self) -> EvalId {
        self.ids += 1;
        EvalId::from_random(self.ids)
    }
}

/// Returns the keys that an action compares without writing them.
pub(super) fn unchanged(action: &Action) -> Vec<(Key, u64)> {
    let compares = action.writes.iter().filter_map(|write| match write {
        Write::RequireUnchanged { key, modify_index } => Some((key.clone(), *modify_index)),
        _ => None,
    });
    compares.collect()
}

/// Returns the client sides that an action writes, each with the modify index that it compares.
pub(super) fn clients(action: &Action) -> Vec<(&AllocClient, u64)> {
    let writes = action
        .writes
        .iter()
        .filter_map(|write| match write.entity()? {
            Entity::AllocClient(client) => Some((&**client, write.expected_index())),
            _ => None,
        });
    writes.collect()
}

/// Returns the modify index that an action compares of what it writes under `key`.
pub(super) fn expected_index(action: &Action, key: &Key) -> Option<u64> {
    let write = action.writes.iter().find(|write| write.key() == key)?;
    Some(write.expected_index())
}
