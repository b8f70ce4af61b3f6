//! A store with etcd's rules: all of a transaction's compares hold, or nothing is written.

use std::sync::Arc;

use applier::Piece;
use model::plan::Stop;
use model::{
    AllocId, AllocatedPort, AllocatedResources, Allocation, ComparableResources, EvalStatus,
    Evaluation, Job, Node, NodeId, Plan, Timestamp,
};
use state::{Change, Entity, Key, Snapshot, State, Write};
use test_kit::{SeededIds, builders};

pub(crate) const NOW: Timestamp = Timestamp(1_000);

pub(crate) struct Store {
    state: State,
    pub(crate) ids: SeededIds,
}

impl Store {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            state: State::default(),
            ids: SeededIds::new(seed),
        }
    }

    pub(crate) fn snapshot(&self) -> Snapshot {
        self.state.snapshot()
    }

    pub(crate) fn revision(&self) -> u64 {
        self.snapshot().index()
    }

    /// Writes without compares, as another service; returns the revision.
    pub(crate) fn put(&mut self, key: Key, entity: Entity) -> u64 {
        let revision = self.revision() + 1;
        let create_index = create_index(&self.snapshot(), &key).unwrap_or(revision);
        let change = Change::Put {
            key,
            entity,
            create_index,
            modify_index: revision,
        };
        self.state.apply(revision, [change]);
        revision
    }

    pub(crate) fn delete(&mut self, key: Key) {
        let revision = self.revision() + 1;
        self.state.apply(revision, [Change::Delete { key }]);
    }

    /// Carries out a transaction.
    ///
    /// # Errors
    /// The revision at which a compare failed; nothing was written.
    pub(crate) fn commit(&mut self, pieces: &[Arc<Piece>]) -> Result<u64, u64> {
        let snapshot = self.snapshot();
        let ops: Vec<&Write> = pieces.iter().flat_map(|piece| &piece.ops).collect();
        for op in &ops {
            if modify_index(&snapshot, op.key()) != op.expected_index() {
                return Err(snapshot.index());
            }
        }
        let revision = snapshot.index() + 1;
        let mut changes = Vec::new();
        let mut written = std::collections::BTreeSet::new();
        for op in ops {
            let Some(entity) = op.entity() else { continue };
            assert!(
                written.insert(op.key().clone()),
                "{:?} is written twice",
                op.key()
            );
            changes.push(Change::Put {
                key: op.key().clone(),
                entity: entity.clone(),
                create_index: create_index(&snapshot, op.key()).unwrap_or(revision),
                modify_index: revision,
            });
        }
        assert!(!changes.is_empty(), "a transaction that writes nothing");
        self.state.apply(revision, changes);
        Ok(revision)
    }

    pub(crate) fn add_node(&mut self, number: u128, edit: impl FnOnce(&mut Node)) -> NodeId {
        let mut node = builders::node(number);
        edit(&mut node);
        let id = node.id;
        self.put(Key::Node(id), Entity::Node(Box::new(node)));
        id
    }

    pub(crate) fn edit_node(&mut self, id: NodeId, edit: impl FnOnce(&mut Node)) {
        let mut node = self.snapshot().node(id).unwrap().value.clone();
        edit(&mut node);
        self.put(Key::Node(id), Entity::Node(Box::new(node)));
    }

    /// Registers the job `name` and an evaluation of it; returns an empty plan for it.
    pub(crate) fn start_plan(&mut self, name: &str) -> Plan {
        let job = builders::service(name, 10);
        if self.snapshot().job(&job.key()).is_none() {
            self.put(Key::Job(job.key()), Entity::Job(Box::new(job.clone())));
        }
        let eval = self.ids.eval();
        let evaluation = Evaluation {
            id: eval,
            ..builders::evaluation(1, &job)
        };
        self.put(Key::Eval(eval), Entity::Eval(Box::new(evaluation)));
        self.plan(&job, eval)
    }

    /// Returns an empty plan for an evaluation, made on the newest state; it ends the evaluation.
    pub(crate) fn plan(&self, job: &Job, eval_id: model::EvalId) -> Plan {
        let snapshot = self.snapshot();
        let eval = snapshot.eval(eval_id).unwrap();
        let mut outcome = eval.value.clone();
        outcome.status = EvalStatus::Complete;
        Plan {
            eval_modify_index: eval.modify_index,
            job: job.key(),
            priority: job.priority,
            snapshot_index: snapshot.index(),
            job_modify_index: snapshot.job(&job.key()).map_or(0, |job| job.modify_index),
            eval_outcome: Some(Box::new(outcome)),
            ..builders::plan(&eval.value)
        }
    }

    /// Adds a placement of `cpu_mhz` on `node` to `plan`.
    pub(crate) fn place(&mut self, plan: &mut Plan, node: NodeId, cpu_mhz: u64) -> AllocId {
        let id = self.ids.alloc();
        let number = u32::try_from(plan.placement_count()).unwrap();
        let alloc = allocation(plan, id, node, number, cpu_mhz);
        plan.placements.entry(node).or_default().push(alloc);
        id
    }

    /// Makes a running allocation of the job `name` on `node`, through a plan.
    pub(crate) fn running(&mut self, name: &str, node: NodeId, cpu_mhz: u64) -> AllocId {
        let mut plan = self.start_plan(name);
        let id = self.place(&mut plan, node, cpu_mhz);
        let number = self.snapshot().allocs_by_job(&plan.job).count();
        plan.placements.get_mut(&node).unwrap()[0].name_index = u32::try_from(number).unwrap();
        self.must_commit(&plan);
        id
    }

    /// Verifies a plan, which must be accepted as a whole, and commits it.
    pub(crate) fn must_commit(&mut self, plan: &Plan) {
        let verdict = applier::verify(&self.snapshot(), plan, NOW);
        let applier::PlanVerification::Accepted(accepted) = verdict else {
            panic!("{verdict:?}")
        };
        assert_eq!(accepted.rejected_nodes, [].into());
        for piece in accepted.pieces {
            self.commit(&[piece]).unwrap();
        }
    }

    pub(crate) fn alloc(&self, id: AllocId) -> Allocation {
        Allocation::clone(&self.snapshot().alloc(id).unwrap().alloc)
    }
}

fn allocation(
    plan: &Plan,
    id: AllocId,
    node_id: NodeId,
    name_index: u32,
    cpu_mhz: u64,
) -> Allocation {
    Allocation {
        id,
        eval_id: plan.eval_id,
        namespace: plan.job.namespace.clone(),
        job_id: plan.job.job_id.clone(),
        name_index,
        resources: AllocatedResources {
            total: ComparableResources {
                cpu_mhz,
                memory_mib: 1,
                disk_mib: 1,
            },
            ..AllocatedResources::default()
        },
        create_time: NOW,
        ..builders::allocation(0, &builders::service("web", 1), node_id)
    }
}

pub(crate) fn port(value: u16) -> AllocatedPort {
    AllocatedPort {
        label: "http".into(),
        value,
        to: value,
        host_ip: "127.0.0.1".into(),
        ignore_collision: false,
        task: String::new(),
    }
}

pub(crate) fn stop(id: AllocId) -> Stop {
    Stop {
        alloc_id: id,
        description: "not needed".into(),
        client_status: None,
        followup_eval_id: None,
        preempted_by: None,
    }
}

pub(crate) fn modify_index(snapshot: &Snapshot, key: &Key) -> u64 {
    match key {
        Key::Job(key) => snapshot.job(key).map_or(0, |job| job.modify_index),
        Key::Eval(id) => snapshot.eval(*id).map_or(0, |eval| eval.modify_index),
        Key::Alloc(id) => snapshot
            .alloc(*id)
            .map_or(0, |view| view.alloc_modify_index),
        Key::Node(id) => snapshot.node(*id).map_or(0, |node| node.modify_index),
        Key::Deployment(id) => snapshot.deployment(*id).map_or(0, |it| it.modify_index),
        Key::Volume(key) => snapshot.volume(key).map_or(0, |it| it.modify_index),
        Key::VolumeClaim(id) => snapshot.volume_claim(*id).map_or(0, |it| it.modify_index),
        _ => panic!("plans neither write nor compare {key:?}"),
    }
}

fn create_index(snapshot: &Snapshot, key: &Key) -> Option<u64> {
    match key {
        Key::Job(key) => snapshot.job(key).map(|job| job.create_index),
        Key::Eval(id) => snapshot.eval(*id).map(|eval| eval.create_index),
        Key::Alloc(id) => snapshot.alloc(*id).map(|view| view.create_index),
        Key::Node(id) => snapshot.node(*id).map(|node| node.create_index),
        Key::Deployment(id) => snapshot.deployment(*id).map(|it| it.create_index),
        Key::Volume(key) => snapshot.volume(key).map(|it| it.create_index),
        _ => None,
    }
}
