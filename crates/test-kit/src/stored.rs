//! Stored objects at revisions, without a store, for tests of code that decides on a snapshot.

use model::{AllocClient, AllocId, Allocation, ClientStatus, Evaluation, Job, Node};
use state::{Change, Entity, Key, Snapshot, State, Write};

/// Objects, each put at a revision of its own.
#[derive(Default)]
pub struct Stored {
    state: State,
}

impl Stored {
    pub fn snapshot(&self) -> Snapshot {
        self.state.snapshot()
    }

    /// Moves the revision on: the next object is put after `revision`.
    pub fn advance(&mut self, revision: u64) {
        self.state.advance(revision);
    }

    pub fn next_revision(&self) -> u64 {
        self.snapshot().index() + 1
    }

    /// Applies `changes` at `revision`.
    pub fn apply(&mut self, revision: u64, changes: Vec<Change>) {
        self.state.apply(revision, changes);
    }

    /// Puts a new object; returns its revision.
    pub fn put(&mut self, key: Key, entity: Entity) -> u64 {
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

    pub fn delete(&mut self, key: Key) {
        self.apply(self.next_revision(), vec![Change::Delete { key }]);
    }

    /// Puts a job and its version.
    pub fn put_job(&mut self, job: &Job) -> u64 {
        let entity = Entity::JobVersion(Box::new(job.clone()));
        self.put(Key::JobVersion(job.key(), job.version), entity);
        self.put(Key::Job(job.key()), Entity::Job(Box::new(job.clone())))
    }

    pub fn put_node(&mut self, node: &Node) -> u64 {
        self.put(Key::Node(node.id), Entity::Node(Box::new(node.clone())))
    }

    pub fn put_alloc(&mut self, alloc: &Allocation) -> u64 {
        self.put(Key::Alloc(alloc.id), Entity::Alloc(Box::new(alloc.clone())))
    }

    pub fn put_eval(&mut self, eval: &Evaluation) -> u64 {
        self.put(Key::Eval(eval.id), Entity::Eval(Box::new(eval.clone())))
    }

    pub fn put_client(&mut self, id: AllocId, client: AllocClient) -> u64 {
        self.put(Key::AllocClient(id), Entity::AllocClient(Box::new(client)))
    }

    pub fn put_status(&mut self, id: AllocId, status: ClientStatus) -> u64 {
        self.put_client(
            id,
            AllocClient {
                status,
                ..AllocClient::default()
            },
        )
    }

    /// Commits writes as the store does: all at one revision, which is returned.
    ///
    /// # Panics
    /// Panics when a compare does not hold.
    pub fn commit(&mut self, writes: &[Write]) -> u64 {
        let snapshot = self.snapshot();
        for write in writes {
            let key = write.key();
            let modified = snapshot.indexes(key).map_or(0, |(_, modified)| modified);
            match write.expected_index() {
                0 => assert_eq!(modified, 0, "{key:?} exists"),
                expected => assert_eq!(modified, expected, "{key:?} changed"),
            }
        }
        self.state = snapshot.after(writes.iter().cloned()).to_state();
        self.snapshot().index()
    }
}
