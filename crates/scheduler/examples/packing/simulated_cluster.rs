//! A cluster without services: jobs come and go, and plans are committed through the plan-applier's
//! verification.

#![allow(dead_code, reason = "the examples each use a part of it")]

use applier::{PlanVerification, verify};
use model::{
    EvalId, Evaluation, Indexed, Job, JobKey, Node, Plan, PlanResult, Timestamp, TriggeredBy,
};
use state::{Change, Entity, Key, Snapshot, State, Write};
use test_kit::SeededIds;

pub(crate) const NOW: Timestamp = Timestamp(1);

pub(crate) struct SimulatedCluster {
    state: State,
    revision: u64,
    ids: SeededIds,
}

impl SimulatedCluster {
    pub(crate) fn new(nodes: &[Node], seed: u64) -> Self {
        let nodes = nodes.iter().map(|node| Change::Put {
            key: Key::Node(node.id),
            entity: Entity::Node(Box::new(node.clone())),
            create_index: 1,
            modify_index: 1,
        });
        Self {
            state: State::from_list(1, nodes),
            revision: 1,
            ids: SeededIds::new(seed),
        }
    }

    /// Returns a copy with other ids.
    pub(crate) fn fork(&self, seed: u64) -> Self {
        Self {
            state: self.snapshot().to_state(),
            revision: self.revision,
            ids: SeededIds::new(seed),
        }
    }

    pub(crate) fn snapshot(&self) -> Snapshot {
        self.state.snapshot()
    }

    /// Writes a job, and its evaluation.
    pub(crate) fn register(&mut self, job: &Job) -> EvalId {
        self.write_job(job.clone(), TriggeredBy::JobRegister)
    }

    /// Stops a job, and makes its evaluation.
    pub(crate) fn stop(&mut self, key: &JobKey) -> EvalId {
        let snapshot = self.snapshot();
        let mut job = snapshot.job(key).expect("it was registered").value.clone();
        job.stop = true;
        self.write_job(job, TriggeredBy::JobDeregister)
    }

    fn write_job(&mut self, job: Job, reason: TriggeredBy) -> EvalId {
        let id = self.ids.eval();
        let eval = Evaluation::pending(id, job.key(), job.job_type, job.priority, reason, NOW);
        self.apply(vec![
            (Key::Eval(id), Entity::Eval(Box::new(eval))),
            (Key::Job(job.key()), Entity::Job(Box::new(job))),
        ]);
        id
    }

    pub(crate) fn eval(&self, id: EvalId) -> Indexed<Evaluation> {
        let snapshot = self.snapshot();
        Indexed::clone(snapshot.eval(id).expect("it was written"))
    }

    /// Verifies a plan against the newest state, and applies the accepted part.
    pub(crate) fn commit(&mut self, plan: &Plan) -> PlanResult {
        let accepted = match verify(&self.snapshot(), plan, NOW) {
            PlanVerification::Accepted(accepted) => accepted,
            PlanVerification::Refused(refusal) => {
                panic!("the job has one evaluation at a time: {refusal:?}")
            }
            PlanVerification::Waits => panic!("nothing is on its way"),
        };
        let mut result = PlanResult {
            rejected_nodes: accepted.rejected_nodes,
            ..PlanResult::default()
        };
        for piece in &accepted.pieces {
            let created = piece.ops.iter().filter_map(Write::created_alloc);
            result.placed.extend(created);
            let writes = piece
                .ops
                .iter()
                .filter_map(|op| Some((op.key().clone(), op.entity()?.clone())));
            result.commit_index = self.apply(writes.collect());
        }
        if !result.rejected_nodes.is_empty() {
            result.refresh_index = self.revision;
        }
        result
    }

    fn apply(&mut self, writes: Vec<(Key, Entity)>) -> u64 {
        self.revision += 1;
        let snapshot = self.snapshot();
        let revision = self.revision;
        let changes = writes.into_iter().map(|(key, entity)| Change::Put {
            create_index: create_index(&snapshot, &key).unwrap_or(revision),
            modify_index: revision,
            key,
            entity,
        });
        self.state.apply(revision, changes.collect::<Vec<_>>());
        revision
    }
}

fn create_index(snapshot: &Snapshot, key: &Key) -> Option<u64> {
    match key {
        Key::Job(key) => snapshot.job(key).map(|job| job.create_index),
        Key::Eval(id) => snapshot.eval(*id).map(|eval| eval.create_index),
        Key::Alloc(id) => snapshot.alloc(*id).map(|view| view.create_index),
        _ => None,
    }
}
