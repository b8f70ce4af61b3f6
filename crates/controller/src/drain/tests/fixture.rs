//! A replica, a drainer, a scheduler that migrates marked allocations, and obedient nodes: only this
//! file knows the API.

use std::collections::BTreeMap;
use std::time::Duration;

use model::{
    AllocClient, AllocId, Allocation, ClientStatus, Deployment, DeploymentGroup, DeploymentHealth,
    DeploymentId, DeploymentStatus, DesiredStatus, DrainStrategy, EvalId, EvalStatus, Evaluation,
    Job, JobType, Node, NodeId, NodeStatus, Timestamp,
};
use state::{AllocView, Change, Entity, Key, Snapshot, State, Write};
use test_kit::builders::{allocation, batch, evaluation, node, service};

use crate::drain::{DrainDecisions, DrainingNodes, decide};

pub(super) const SECOND: Duration = Duration::from_secs(1);
pub(super) const HOUR: Duration = Duration::from_secs(3_600);

pub(super) fn node_id(number: u128) -> NodeId {
    NodeId::from_random(number)
}

pub(super) fn alloc_id(number: u128) -> AllocId {
    AllocId::from_random(number)
}

/// A service whose allocations leave at most `max_parallel` at a time.
pub(super) fn paced(id: &str, count: u32, max_parallel: u32) -> Job {
    let mut job = service(id, count);
    let migrate = job.task_groups[0].migrate.as_mut().expect("a service");
    migrate.max_parallel = max_parallel;
    job
}

pub(super) fn of_type(id: &str, job_type: JobType) -> Job {
    Job {
        job_type,
        ..batch(id, 1)
    }
}

pub(super) struct Fixture {
    pub(super) replica: State,
    pub(super) draining: DrainingNodes,
    pub(super) now: Timestamp,
    revision: u64,
    created: BTreeMap<AllocId, u64>,
    next_alloc: u128,
    jobs: BTreeMap<String, u64>,
}

impl Fixture {
    /// Ready nodes `1..=count`.
    pub(super) fn new(count: u128) -> Self {
        let mut fixture = Self {
            replica: State::default(),
            draining: DrainingNodes::default(),
            now: Timestamp::from_millis(1_000_000),
            revision: 0,
            created: BTreeMap::new(),
            next_alloc: 1_000,
            jobs: BTreeMap::new(),
        };
        for number in 1..=count {
            fixture.put_node(node(number));
        }
        fixture
    }

    pub(super) fn snapshot(&self) -> Snapshot {
        self.replica.snapshot()
    }

    fn put(&mut self, key: Key, entity: Entity, create_index: Option<u64>) -> u64 {
        self.revision += 1;
        let change = Change::Put {
            key,
            entity,
            create_index: create_index.unwrap_or(self.revision),
            modify_index: self.revision,
        };
        self.replica.apply(self.revision, [change.clone()]);
        self.draining.note(&[change]);
        self.revision
    }

    pub(super) fn put_node(&mut self, node: Node) {
        let created = self.snapshot().node(node.id).map(|node| node.create_index);
        self.put(Key::Node(node.id), Entity::Node(node.into()), created);
    }

    pub(super) fn node(&self, number: u128) -> Node {
        let snapshot = self.snapshot();
        let node = snapshot.node(node_id(number)).expect("registered");
        node.value.clone()
    }

    pub(super) fn set_status(&mut self, number: u128, status: NodeStatus) {
        let mut node = self.node(number);
        node.status = status;
        self.put_node(node);
    }

    pub(super) fn put_job(&mut self, job: &Job) {
        let version = Key::JobVersion(job.key(), job.version);
        self.put(version, Entity::JobVersion(job.clone().into()), None);
        let created = self.jobs.get(&job.id).copied();
        let index = self.put(
            Key::Job(job.key()),
            Entity::Job(job.clone().into()),
            created,
        );
        self.jobs.entry(job.id.clone()).or_insert(index);
    }

    /// Deletes a job; a later job of its name is another one.
    pub(super) fn purge(&mut self, job: &Job) {
        self.revision += 1;
        let change = Change::Delete {
            key: Key::Job(job.key()),
        };
        self.replica.apply(self.revision, [change.clone()]);
        self.draining.note(&[change]);
        self.jobs.remove(&job.id);
    }

    pub(super) fn drain(&mut self, number: u128, deadline: Option<Duration>) {
        self.drain_with(number, deadline, false);
    }

    pub(super) fn drain_with(
        &mut self,
        number: u128,
        deadline: Option<Duration>,
        ignore_system_jobs: bool,
    ) {
        let mut node = self.node(number);
        let strategy = DrainStrategy::new(deadline, ignore_system_jobs, self.now);
        node.begin_drain(strategy, BTreeMap::new(), self.now);
        self.put_node(node);
    }

    pub(super) fn write_alloc(&mut self, alloc: Allocation) {
        let id = alloc.id;
        let created = self.created.get(&id).copied();
        let index = self.put(Key::Alloc(id), Entity::Alloc(alloc.into()), created);
        self.created.entry(id).or_insert(index);
    }

    /// Makes a running allocation one of the canaries of the job's deployment.
    pub(super) fn try_out(&mut self, number: u128, job: &Job) {
        let id = DeploymentId::from_random(1);
        if self.snapshot().deployment(id).is_none() {
            let group = DeploymentGroup {
                desired_canaries: 1,
                ..DeploymentGroup::default()
            };
            let deployment = Deployment {
                id,
                job: job.key(),
                job_version: job.version,
                job_modify_index: 0,
                job_create_index: self.jobs[&job.id],
                status: DeploymentStatus::Running,
                status_description: String::new(),
                groups: BTreeMap::from([(job.task_groups[0].name.clone(), group)]),
                eval_priority: job.priority,
                create_time: self.now,
                modify_time: self.now,
            };
            self.put(
                Key::Deployment(id),
                Entity::Deployment(deployment.into()),
                None,
            );
        }
        self.edit(number, |alloc| {
            alloc.canary = true;
            alloc.deployment_id = Some(id);
        });
        self.report(number, ClientStatus::Running, Some(true));
    }

    pub(super) fn promote(&mut self, job: &Job) {
        let snapshot = self.snapshot();
        let stored = snapshot.latest_deployment(&job.key()).expect("tried out");
        let mut deployment = stored.value.clone();
        for group in deployment.groups.values_mut() {
            group.promoted = true;
        }
        let id = deployment.id;
        let created = Some(stored.create_index);
        self.put(
            Key::Deployment(id),
            Entity::Deployment(deployment.into()),
            created,
        );
    }

    /// Places `job`'s allocation `name_index` on a node; it is pending.
    pub(super) fn place(&mut self, number: u128, job: &Job, name_index: u32, node: u128) {
        let mut alloc = allocation(number, job, node_id(node));
        alloc.name_index = name_index;
        alloc.job_create_index = self.jobs[&job.id];
        self.write_alloc(alloc);
    }

    /// The same, running and healthy.
    pub(super) fn run(&mut self, number: u128, job: &Job, name_index: u32, node: u128) {
        self.place(number, job, name_index, node);
        self.report(number, ClientStatus::Running, Some(true));
    }

    pub(super) fn report(&mut self, number: u128, status: ClientStatus, healthy: Option<bool>) {
        self.report_of(alloc_id(number), status, healthy);
    }

    pub(super) fn report_of(&mut self, id: AllocId, status: ClientStatus, healthy: Option<bool>) {
        let snapshot = self.snapshot();
        let deployment_id = snapshot.alloc(id).and_then(|view| view.alloc.deployment_id);
        let health = |healthy| DeploymentHealth {
            healthy,
            time: self.now,
            deployment_id,
        };
        let client = AllocClient {
            status,
            health: healthy.map(health),
            modify_time: self.now,
            ..AllocClient::default()
        };
        self.put(
            Key::AllocClient(id),
            Entity::AllocClient(client.into()),
            None,
        );
    }

    pub(super) fn edit(&mut self, number: u128, edit: impl FnOnce(&mut Allocation)) {
        let mut alloc = Allocation::clone(&self.view(number).alloc);
        edit(&mut alloc);
        self.write_alloc(alloc);
    }

    pub(super) fn view(&self, number: u128) -> AllocView {
        let snapshot = self.snapshot();
        snapshot.alloc(alloc_id(number)).expect("placed").clone()
    }

    /// Returns the decision of one pass, without writing it.
    pub(super) fn look(&mut self) -> DrainDecisions {
        let nodes = self.draining.take();
        let mut next_id = || EvalId::from_random(1);
        decide(&self.snapshot(), self.now, nodes, &mut next_id)
    }

    /// Looks once and writes the decisions; returns the marked allocations and the completed drains,
    /// by number.
    pub(super) fn step(&mut self) -> (Vec<u128>, Vec<u128>) {
        let look = self.look();
        let mut marked = Vec::new();
        for marks in look.marks {
            let snapshot = self.snapshot();
            for write in marks.txns.into_iter().flat_map(|txn| txn.writes) {
                match write {
                    Write::Update {
                        key: Key::Alloc(id),
                        modify_index,
                        entity: Entity::Alloc(alloc),
                    } => {
                        let stored = snapshot.alloc(id).expect("placed");
                        assert_eq!(stored.alloc_modify_index, modify_index);
                        assert!(!stored.alloc.transition.migrate, "marked twice");
                        marked.push(id);
                        self.write_alloc(*alloc);
                    }
                    // The evaluation is written below, as one that is complete.
                    other => self.check_compare(&other),
                }
            }
            let job = snapshot.job(&marks.job).map(|job| job.value.clone());
            let pending = Evaluation {
                status: EvalStatus::Complete,
                snapshot_index: self.revision,
                ..evaluation(
                    self.next_number(),
                    &job.unwrap_or_else(|| service("gone", 1)),
                )
            };
            self.put(Key::Eval(pending.id), Entity::Eval(pending.into()), None);
        }
        let mut done = Vec::new();
        for completion in look.done {
            done.push(completion.node_id);
            match completion.write {
                Write::Update {
                    entity: Entity::Node(node),
                    ..
                } => self.put_node(*node),
                other => panic!("{other:?}"),
            }
        }
        let marked = marked
            .iter()
            .filter_map(|id| number(|n| alloc_id(n) == *id));
        let done = done.iter().filter_map(|id| number(|n| node_id(n) == *id));
        (marked.collect(), done.collect())
    }

    /// Checks a write that stores nothing, or an evaluation.
    fn check_compare(&self, write: &Write) {
        let snapshot = self.snapshot();
        let stored = match write.key() {
            Key::Job(key) => snapshot.job(key).map(|job| job.modify_index),
            Key::Node(id) => snapshot.node(*id).map(|node| node.modify_index),
            Key::Eval(_) => None,
            other => panic!("a drain writes {other:?}"),
        };
        assert_eq!(write.expected_index(), stored.unwrap_or_default());
    }

    fn next_number(&mut self) -> u128 {
        self.next_alloc += 1;
        self.next_alloc
    }

    /// Stops marked allocations, and places those of services anew on `to`; returns the new ids.
    pub(super) fn schedule(&mut self, to: u128) -> Vec<AllocId> {
        let snapshot = self.snapshot();
        let mut placed = Vec::new();
        let mut waiting: Vec<_> = snapshot
            .allocs()
            .filter(|view| view.alloc.transition.migrate && !view.is_terminal())
            .cloned()
            .collect();
        waiting.sort_by_key(|view| view.alloc.id);
        for view in waiting {
            let mut stopped = Allocation::clone(&view.alloc);
            stopped.desired_status = DesiredStatus::Stop;
            let job = snapshot.job(&view.alloc.job_key()).expect("registered");
            if job.value.job_type == JobType::Service {
                let id = alloc_id(self.next_number());
                let replacement = Allocation {
                    id,
                    node_id: node_id(to),
                    transition: model::DesiredTransition::default(),
                    ..Allocation::clone(&view.alloc)
                };
                placed.push(id);
                self.write_alloc(replacement);
            }
            self.write_alloc(stopped);
        }
        placed
    }
}

/// Returns the number below 2,000 that has some property.
fn number(fits: impl Fn(u128) -> bool) -> Option<u128> {
    (1..2_000).find(|number| fits(*number))
}
