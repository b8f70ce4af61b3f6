//! Unblocking by capacity: a gain unblocks evaluations that may fit, and none that could be placed
//! stays blocked.

use std::collections::BTreeMap;

use model::constraint::{Constraint, Operator};
use model::{
    AllocClient, AllocId, AllocMetric, ClientStatus, ComparableResources, EvalId, EvalStatus,
    Evaluation, Job, JobType, Node, NodeId, Preemption, SchedulerConfiguration,
};
use proptest::prelude::*;
use state::{Change, Entity, Key};
use test_kit::builders::{allocation, batch, node};

use super::fixture::{Fixture, blocked, eval_id, node_id};
use crate::State;

const CLASS: &str = "c1";

fn put(key: Key, entity: Entity) -> Change {
    Change::Put {
        key,
        entity,
        create_index: 0,
        modify_index: 0,
    }
}

/// A batch job whose allocation needs `cpu_mhz`.
fn job(number: u128, cpu_mhz: u32) -> Job {
    let mut job = batch(&format!("j{number}"), 1);
    let resources = &mut job.task_groups[0].tasks[0].resources;
    resources.cpu_mhz = cpu_mhz;
    job
}

/// A broker, nodes, and a scheduler that places one allocation where it fits.
struct Cluster {
    fixture: Fixture,
    jobs: BTreeMap<EvalId, Job>,
    nodes: Vec<NodeId>,
    running: Vec<AllocId>,
    next: u128,
    runs: usize,
    /// Evaluations that found no place, and the index of their snapshots; not yet written.
    late: Vec<(EvalId, u64)>,
}

impl Cluster {
    fn new() -> Self {
        Self {
            fixture: Fixture::with_worker(1_000),
            jobs: BTreeMap::new(),
            nodes: Vec::new(),
            running: Vec::new(),
            next: 1,
            runs: 0,
            late: Vec::new(),
        }
    }

    fn number(&mut self) -> u128 {
        self.next += 1;
        self.next
    }

    fn add_node(&mut self, cpu_mhz: u64) {
        let id = node_id(self.number());
        let node = Node {
            id,
            computed_class: CLASS.to_owned(),
            resources: ComparableResources {
                cpu_mhz,
                ..node(1).resources
            },
            ..node(1)
        };
        let entity = Entity::Node(Box::new(node));
        self.fixture.write(vec![put(Key::Node(id), entity)]);
        self.nodes.push(id);
    }

    fn start(&mut self, job: &Job, node: NodeId) {
        let alloc = allocation(self.number(), job, node);
        self.running.push(alloc.id);
        let (key, entity) = (Key::Alloc(alloc.id), Entity::Alloc(Box::new(alloc)));
        self.fixture.write(vec![put(key, entity)]);
    }

    fn end(&mut self, position: usize) {
        let id = self.running.swap_remove(position);
        let client = AllocClient {
            status: ClientStatus::Complete,
            ..AllocClient::default()
        };
        let entity = Entity::AllocClient(Box::new(client));
        self.fixture.write(vec![put(Key::AllocClient(id), entity)]);
    }

    fn submit(&mut self, job: Job) -> EvalId {
        let id = eval_id(self.number());
        let (key, entity) = (Key::Job(job.key()), Entity::Job(Box::new(job.clone())));
        self.fixture.write(vec![put(key, entity)]);
        self.jobs.insert(id, job);
        let index = self.fixture.revision;
        self.block(id, index);
        id
    }

    fn blocked(&self, id: EvalId, snapshot_index: u64) -> Evaluation {
        let job = &self.jobs[&id];
        Evaluation {
            id,
            job_type: job.job_type,
            failed_task_groups: BTreeMap::from([("web".to_owned(), AllocMetric::default())]),
            ..blocked(1, &job.id, snapshot_index, &[(CLASS, true)])
        }
    }

    fn block(&mut self, id: EvalId, snapshot_index: u64) {
        let eval = self.blocked(id, snapshot_index);
        self.fixture.put(&[eval]);
    }

    fn place_for(&self, id: EvalId) -> Option<NodeId> {
        let ask = self.jobs[&id].task_groups[0].ask();
        let snapshot = self.fixture.snapshot();
        let fits = |node: &&NodeId| {
            let used = snapshot.usage(**node).map(|usage| usage.total);
            let available = snapshot.node(**node).unwrap().value.available();
            available.minus(used.unwrap_or_default()).cpu_mhz >= ask.cpu_mhz
        };
        self.nodes.iter().find(fits).copied()
    }

    /// Runs the evaluations that the broker delivers. Outcomes without a place are written at once,
    /// or `late`.
    fn schedule(&mut self, is_late: bool) {
        loop {
            let delivered = self.fixture.delivered();
            if delivered.is_empty() {
                return;
            }
            for id in delivered {
                self.runs += 1;
                match self.place_for(id) {
                    Some(node) => {
                        let job = self.jobs[&id].clone();
                        self.start(&job, node);
                        self.fixture.complete(id);
                        self.jobs.remove(&id);
                    }
                    None => self.late.push((id, self.fixture.revision)),
                }
            }
            if !is_late {
                self.write_late();
            }
        }
    }

    fn write_late(&mut self) {
        for (id, snapshot_index) in std::mem::take(&mut self.late) {
            self.block(id, snapshot_index);
        }
    }
}

#[test]
fn ten_small_ends_wake_none_of_297_large_asks() {
    let mut cluster = Cluster::new();
    cluster.add_node(4_000);
    let small = job(900, 100);
    for _ in 0..40 {
        let node = cluster.nodes[0];
        cluster.start(&small, node);
    }
    for number in 1..=297 {
        cluster.submit(job(number, 2_000));
    }
    cluster.schedule(false);
    let (runs, revision) = (cluster.runs, cluster.fixture.revision);
    for _ in 0..10 {
        cluster.end(0);
        cluster.schedule(false);
    }
    assert_eq!(
        cluster.runs - runs,
        0,
        "1,000 MHz are free, and each wants 2,000"
    );
    assert_eq!(
        cluster.fixture.revision - revision,
        10,
        "only the ends are written"
    );
    // The tenth more makes room for one.
    for _ in 0..10 {
        cluster.end(0);
        cluster.schedule(false);
    }
    assert_eq!(cluster.running.len(), 21);
}

#[test]
fn evaluations_that_depend_on_several_nodes_run_after_every_gain() {
    let too_large = |number| job(number, 3_000);
    let mut distinct = too_large(1);
    distinct.constraints.push(Constraint {
        operator: Operator::DistinctHosts,
        ..Constraint::default()
    });
    let mut at_once = too_large(2);
    at_once.all_at_once = true;
    let mut newer = too_large(3);
    newer.version = 1;
    for (what, job, is_woken) in [
        ("plain", too_large(4), false),
        ("distinct hosts", distinct, true),
        ("all at once", at_once, true),
        ("replaces its own", newer.clone(), true),
    ] {
        let mut cluster = Cluster::new();
        cluster.add_node(4_000);
        let node = cluster.nodes[0];
        let older = Job {
            version: 0,
            ..newer.clone()
        };
        for _ in 0..2 {
            cluster.start(&super::free_capacity::job(9, 500), node);
        }
        cluster.start(&older, node);
        let id = cluster.submit(job);
        assert_eq!(
            cluster.fixture.broker.state_of(id),
            Some(State::Blocked),
            "{what}"
        );
        cluster.end(0);
        let delivered = cluster.fixture.delivered();
        assert_eq!(delivered == [id], is_woken, "{what}: {delivered:?}");
    }
}

#[test]
fn jobs_that_may_evict_others_are_woken_by_every_gain() {
    let mut cluster = Cluster::new();
    cluster.add_node(4_000);
    let node = cluster.nodes[0];
    for _ in 0..2 {
        cluster.start(&job(9, 2_000), node);
    }
    let config = SchedulerConfiguration {
        preemption: Preemption {
            batch: true,
            ..Preemption::default()
        },
        ..SchedulerConfiguration::default()
    };
    let entity = Entity::SchedulerConfig(Box::new(config));
    let id = cluster.submit(job(1, 3_000));
    cluster
        .fixture
        .write(vec![put(Key::SchedulerConfig, entity)]);
    cluster.end(0);
    assert_eq!(cluster.fixture.delivered(), [id]);
    assert_eq!(cluster.jobs[&id].job_type, JobType::Batch);
}

#[derive(Clone, Debug)]
enum Op {
    Node(u64),
    Submit(u32),
    End(prop::sample::Index),
    WriteLate,
    Elect,
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        1 => (1_u64..8).prop_map(|size| Op::Node(size * 500)),
        4 => (1_u32..8).prop_map(|size| Op::Submit(size * 500)),
        4 => any::<prop::sample::Index>().prop_map(Op::End),
        2 => Just(Op::WriteLate),
        1 => Just(Op::Elect),
    ]
}

proptest! {
    /// Whatever ends, comes and fails over, in the end no evaluation is blocked that has a place.
    #[test]
    fn no_evaluation_with_a_place_stays_blocked(
        ops in prop::collection::vec((op(), any::<bool>()), 1..60)
    ) {
        let mut cluster = Cluster::new();
        let mut number = 0;
        for (op, is_late) in ops {
            match op {
                Op::Node(cpu_mhz) => cluster.add_node(cpu_mhz),
                Op::Submit(cpu_mhz) => {
                    number += 1;
                    let id = cluster.submit(job(number, cpu_mhz));
                    // As its scheduler would have: blocked only if there was no place.
                    if cluster.place_for(id).is_some() {
                        let eval = cluster.blocked(id, 0);
                        cluster.fixture.put(&[Evaluation { status: EvalStatus::Pending, ..eval }]);
                    }
                }
                Op::End(index) if !cluster.running.is_empty() => {
                    let position = index.index(cluster.running.len());
                    cluster.end(position);
                }
                Op::End(_) => {}
                Op::WriteLate => cluster.write_late(),
                Op::Elect => {
                    cluster.late.clear();
                    cluster.fixture.elect();
                    cluster.fixture.open(super::fixture::WORKER, &JobType::ALL, 1_000);
                }
            }
            cluster.schedule(is_late);
        }
        cluster.write_late();
        cluster.schedule(false);
        let ids: Vec<EvalId> = cluster.jobs.keys().copied().collect();
        for id in ids {
            let place = cluster.place_for(id);
            prop_assert!(place.is_none(), "{id} waits, and {place:?} has room");
        }
    }
}
