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
        let revision = self.next_revision();
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
        self.apply(revision, changes);
        revision
    }
}

/// Returns the create and modify index of a key; `None`: it does not exist.
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
        Key::Node(id) => snapshot
            .node(*id)
            .map(|row| (row.create_index, row.modify_index)),
        Key::Alloc(id) => snapshot
            .alloc(*id)
            .map(|view| (view.create_index, view.alloc_modify_index)),
        Key::IntroductionToken(id) => snapshot
            .introduction_token(*id)
            .map(|row| (row.create_index, row.modify_index)),
        Key::NodeIntroduction(id) => snapshot
            .node_introduction(*id)
            .map(|row| (row.create_index, row.modify_index)),
        Key::Services(id) => snapshot
            .alloc_services(*id)
            .map(|row| (row.create_index, row.modify_index)),
        Key::NodeRevocation(id) => snapshot
            .node_revocation(*id)
            .map(|row| (row.create_index, row.modify_index)),
        other => panic!("the indexes of {other:?} are not read here yet"),
    }
}
