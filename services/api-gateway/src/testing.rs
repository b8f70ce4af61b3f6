//! A stored world for the tests of what decides: objects at revisions, without a store.

use model::{AllocClient, AllocId, Allocation, ClientStatus, Evaluation, Job, Node};
use state::{Change, Entity, Key, Snapshot, State};

/// Objects, each put at a revision of its own.
#[derive(Default)]
pub(crate) struct Stored {
    state: State,
}

impl Stored {
    pub(crate) fn snapshot(&self) -> Snapshot {
        self.state.snapshot()
    }

    /// Lets time pass: whatever comes next is after `revision`.
    pub(crate) fn advance(&mut self, revision: u64) {
        self.state.advance(revision);
    }

    pub(crate) fn next_revision(&self) -> u64 {
        self.snapshot().index() + 1
    }

    /// Applies `changes` at `revision`.
    pub(crate) fn apply(&mut self, revision: u64, changes: Vec<Change>) {
        self.state.apply(revision, changes);
    }

    /// Puts a new object; returns its revision.
    pub(crate) fn put(&mut self, key: Key, entity: Entity) -> u64 {
        let revision = self.next_revision();
        let put = Change::Put {
            key,
            entity,
            create_index: revision,
            modify_index: revision,
        };
        self.apply(revision, vec![put]);
        revision
    }

    pub(crate) fn delete(&mut self, key: Key) {
        self.apply(self.next_revision(), vec![Change::Delete { key }]);
    }

    /// Puts a job and its version.
    pub(crate) fn put_job(&mut self, job: &Job) -> u64 {
        let entity = Entity::JobVersion(Box::new(job.clone()));
        self.put(Key::JobVersion(job.key(), job.version), entity);
        self.put(Key::Job(job.key()), Entity::Job(Box::new(job.clone())))
    }

    pub(crate) fn put_node(&mut self, node: &Node) -> u64 {
        self.put(Key::Node(node.id), Entity::Node(Box::new(node.clone())))
    }

    pub(crate) fn put_alloc(&mut self, alloc: &Allocation) -> u64 {
        self.put(Key::Alloc(alloc.id), Entity::Alloc(Box::new(alloc.clone())))
    }

    pub(crate) fn put_eval(&mut self, eval: &Evaluation) -> u64 {
        self.put(Key::Eval(eval.id), Entity::Eval(Box::new(eval.clone())))
    }

    pub(crate) fn put_client(&mut self, id: AllocId, client: AllocClient) -> u64 {
        self.put(Key::AllocClient(id), Entity::AllocClient(Box::new(client)))
    }

    pub(crate) fn put_status(&mut self, id: AllocId, status: ClientStatus) -> u64 {
        self.put_client(
            id,
            AllocClient {
                status,
                ..AllocClient::default()
            },
        )
    }
}
