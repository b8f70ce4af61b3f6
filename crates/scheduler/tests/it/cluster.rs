//! A cluster without services: a state that commands change, and to which plans are committed
//! through the real verification. Every revision is checked against the invariants.

use std::time::Duration;

use applier::PlanVerification;
use invariants::History;
use model::{
    AllocClient, AllocId, Allocation, ClientStatus, DeploymentHealth, EvalId, EvalStatus,
    Evaluation, Indexed, Job, JobKey, Node, NodeId, NodePool, NodeStatus, Plan, PlanResult,
    SchedulerConfiguration, TaskPhase, TaskState, Timestamp, TriggeredBy,
};
use scheduler::{Decision, schedule};
use state::{AllocView, Change, Entity, Key, Snapshot, Write};
use test_kit::SeededIds;

/// The start of the clock: far enough from zero that no time is "never" by accident.
const START: Timestamp = Timestamp(1_000_000_000_000);

pub(crate) struct TestCluster {
    history: History,
    revision: u64,
    pub(crate) now: Timestamp,
    ids: SeededIds,
    seed: u64,
    pub(crate) config: SchedulerConfiguration,
}

impl TestCluster {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            history: History::default(),
            revision: 0,
            now: START,
            ids: SeededIds::new(seed),
            seed,
            config: SchedulerConfiguration::default(),
        }
    }

    pub(crate) fn snapshot(&self) -> Snapshot {
        self.history.snapshot()
    }

    pub(crate) fn wait(&mut self, duration: Duration) {
        self.now = self.now.plus(duration);
    }

    /// Applies one revision, and checks the invariants.
    pub(crate) fn apply(&mut self, entities: Vec<(Key, Option<Entity>)>) -> u64 {
        self.revision += 1;
        let snapshot = self.snapshot();
        let revision = self.revision;
        let changes = entities.into_iter().map(|(key, entity)| match entity {
            None => Change::Delete { key },
            Some(entity) => Change::Put {
                create_index: create_index(&snapshot, &key).unwrap_or(revision),
                modify_index: revision,
                key,
                entity,
            },
        });
        self.history.apply(revision, changes.collect());
        assert_eq!(self.history.violations(), [], "seed {}", self.seed);
        revision
    }

    pub(crate) fn put(&mut self, key: Key, entity: Entity) -> u64 {
        self.apply(vec![(key, Some(entity))])
    }

    pub(crate) fn put_node(&mut self, node: Node) -> NodeId {
        let id = node.id;
        self.put(Key::Node(id), Entity::Node(Box::new(node)));
        id
    }

    pub(crate) fn node_named(&self, name: &str) -> Node {
        let snapshot = self.snapshot();
        let found = snapshot.nodes().find(|node| node.value.name == name);
        found
            .unwrap_or_else(|| panic!("no node {name}"))
            .value
            .clone()
    }

    /// Registers a job: a new one, or the next version of an old one.
    pub(crate) fn register(&mut self, mut job: Job) {
        let key = job.key();
        if let Some(old) = self.snapshot().job(&key) {
            job.version = old.value.version + 1;
        }
        let version = Key::JobVersion(key.clone(), job.version);
        self.apply(vec![
            (version, Some(Entity::JobVersion(Box::new(job.clone())))),
            (Key::Job(key), Some(Entity::Job(Box::new(job)))),
        ]);
    }

    pub(crate) fn job(&self, key: &JobKey) -> Job {
        self.snapshot()
            .job(key)
            .expect("the job is registered")
            .value
            .clone()
    }

    /// Deletes a job and its versions.
    pub(crate) fn purge(&mut self, key: &JobKey) {
        let snapshot = self.snapshot();
        let versions = snapshot.job_versions(key);
        let versions = versions.map(|job| Key::JobVersion(key.clone(), job.value.version));
        let keys = versions.chain([Key::Job(key.clone())]);
        self.apply(keys.map(|key| (key, None)).collect());
    }

    pub(crate) fn add_eval(&mut self, job: &Job, triggered_by: TriggeredBy) -> EvalId {
        let id = self.ids.eval();
        let eval = Evaluation::pending(
            id,
            job.key(),
            job.job_type,
            job.priority,
            triggered_by,
            self.now,
        );
        self.put_eval(eval);
        id
    }

    pub(crate) fn put_eval(&mut self, eval: Evaluation) {
        self.put(Key::Eval(eval.id), Entity::Eval(Box::new(eval)));
    }

    pub(crate) fn eval(&self, id: EvalId) -> Indexed<Evaluation> {
        Indexed::clone(self.snapshot().eval(id).expect("the evaluation exists"))
    }

    /// Stores the configuration, and the settings of node pools, in one revision.
    pub(crate) fn store_config(&mut self) {
        let mut config = self.config.clone();
        let pools = std::mem::take(&mut config.pools).into_iter();
        let mut entities: Vec<_> = pools
            .map(|(name, scheduler_config)| {
                let pool = NodePool {
                    scheduler_config,
                    ..NodePool::named(&name)
                };
                (Key::NodePool(name), Some(Entity::NodePool(Box::new(pool))))
            })
            .collect();
        let entity = Entity::SchedulerConfig(Box::new(config));
        entities.push((Key::SchedulerConfig, Some(entity)));
        self.apply(entities);
    }

    /// Plans for an evaluation, without committing.
    pub(crate) fn decide(&mut self, id: EvalId) -> Decision {
        self.seed += 1;
        let (snapshot, eval) = (self.snapshot(), self.eval(id));
        schedule(&snapshot, &eval, self.now, self.seed)
    }

    /// Plans for an evaluation and commits the plan, which must be accepted as a whole: the state
    /// is the newest.
    pub(crate) fn run(&mut self, id: EvalId) -> Decision {
        let decision = self.decide(id);
        let result = self.commit(&decision.plan);
        let whole = result.refused.is_none() && result.rejected_nodes.is_empty();
        assert!(whole, "a plan made on its own snapshot: {result:?}");
        decision
    }

    /// Verifies a plan and applies the accepted part, piece by piece.
    pub(crate) fn commit(&mut self, plan: &Plan) -> PlanResult {
        match applier::verify(&self.snapshot(), plan, self.now) {
            PlanVerification::Accepted(accepted) => {
                let mut result = PlanResult {
                    rejected_nodes: accepted.rejected_nodes,
                    ..PlanResult::default()
                };
                for piece in &accepted.pieces {
                    result
                        .placed
                        .extend(piece.ops.iter().filter_map(Write::created_alloc));
                    result.commit_index = self.apply_ops(&piece.ops);
                }
                if !result.rejected_nodes.is_empty() {
                    result.refresh_index = self.revision;
                }
                result
            }
            PlanVerification::Refused(refusal) => PlanResult {
                refused: Some(refusal.reason),
                refresh_index: refusal.refresh_index,
                ..PlanResult::default()
            },
            PlanVerification::Waits => panic!("nothing is on its way"),
        }
    }

    fn apply_ops(&mut self, ops: &[Write]) -> u64 {
        let writes = ops
            .iter()
            .filter_map(|op| Some((op.key().clone(), op.entity()?.clone())));
        let writes = writes.map(|(key, entity)| (key, Some(entity)));
        self.apply(writes.collect())
    }

    /// Returns the evaluations that are due, oldest first.
    pub(crate) fn due(&self) -> Vec<EvalId> {
        let snapshot = self.snapshot();
        let mut due: Vec<_> = snapshot
            .open_evals()
            .filter(|eval| eval.value.status == EvalStatus::Pending)
            .filter(|eval| eval.value.wait_until <= self.now)
            .map(|eval| (eval.create_index, eval.value.wait_until, eval.value.id))
            .collect();
        due.sort();
        due.into_iter().map(|(_, _, id)| id).collect()
    }

    pub(crate) fn allocs(&self, job: &JobKey) -> Vec<AllocView> {
        let snapshot = self.snapshot();
        let mut views: Vec<_> = snapshot.allocs_by_job(job).cloned().collect();
        views.sort_by_key(|view| {
            (
                view.alloc.task_group.clone(),
                view.alloc.name_index,
                view.create_index,
            )
        });
        views
    }

    /// Reports a client status of an allocation; a terminal status ends its task now.
    pub(crate) fn report(&mut self, id: AllocId, status: ClientStatus) {
        let mut client = self.client(id);
        client.status = status;
        let mut task = TaskState {
            phase: TaskPhase::Running,
            ..TaskState::default()
        };
        if status == ClientStatus::Running {
            task.started_at = self.now;
        }
        if status.is_terminal() {
            task.phase = TaskPhase::Dead;
            task.failed = status == ClientStatus::Failed;
            task.finished_at = self.now;
        }
        client.task_states = [("server".to_owned(), task)].into();
        self.put_client(id, client);
    }

    pub(crate) fn report_health(&mut self, id: AllocId, healthy: bool) {
        let mut client = self.client(id);
        let alloc = self.alloc(id);
        let deployment_id = alloc.deployment_id.expect("it belongs to a deployment");
        client.health = Some(DeploymentHealth {
            healthy,
            time: self.now,
            deployment_id: Some(deployment_id),
        });
        self.put_client(id, client);
    }

    fn client(&self, id: AllocId) -> AllocClient {
        let snapshot = self.snapshot();
        let view = snapshot.alloc(id).expect("the allocation exists");
        view.client.as_deref().cloned().unwrap_or_default()
    }

    fn put_client(&mut self, id: AllocId, mut client: AllocClient) {
        client.modify_time = self.now;
        self.put(Key::AllocClient(id), Entity::AllocClient(Box::new(client)));
    }

    /// Deletes an allocation, unless it runs on a node that can still report it.
    pub(crate) fn collect(&mut self, id: AllocId) {
        let snapshot = self.snapshot();
        let view = snapshot.alloc(id).expect("the allocation exists");
        let node = snapshot.node(view.alloc.node_id);
        let is_reachable = node.is_some_and(|node| node.value.status != NodeStatus::Down);
        assert!(view.is_terminal(), "{}", view.alloc.name());
        assert!(
            view.is_client_terminal() || !is_reachable,
            "{}",
            view.alloc.name()
        );
        self.apply(vec![(Key::AllocClient(id), None), (Key::Alloc(id), None)]);
    }

    /// Promotes the newest deployment of a job.
    pub(crate) fn promote(&mut self, job: &JobKey) {
        let snapshot = self.snapshot();
        let mut deployment = snapshot
            .latest_deployment(job)
            .expect("there is a deployment")
            .value
            .clone();
        let mut changes = Vec::new();
        for group in deployment.groups.values_mut() {
            group.promoted |= group.desired_canaries > 0;
            for id in &group.placed_canaries {
                let mut alloc = self.alloc(*id);
                if !alloc.is_server_terminal() {
                    alloc.canary = false;
                    changes.push((Key::Alloc(*id), Some(Entity::Alloc(Box::new(alloc)))));
                }
            }
        }
        let key = Key::Deployment(deployment.id);
        changes.push((key, Some(Entity::Deployment(Box::new(deployment)))));
        self.apply(changes);
    }

    pub(crate) fn alloc(&self, id: AllocId) -> Allocation {
        let snapshot = self.snapshot();
        Allocation::clone(&snapshot.alloc(id).expect("the allocation exists").alloc)
    }

    pub(crate) fn edit_alloc(&mut self, id: AllocId, edit: impl FnOnce(&mut Allocation)) {
        let mut alloc = self.alloc(id);
        edit(&mut alloc);
        self.put(Key::Alloc(id), Entity::Alloc(Box::new(alloc)));
    }
}

fn create_index(snapshot: &Snapshot, key: &Key) -> Option<u64> {
    match key {
        Key::Job(key) => snapshot.job(key).map(|job| job.create_index),
        Key::JobVersion(key, version) => snapshot
            .job_version(key, *version)
            .map(|job| job.create_index),
        Key::Eval(id) => snapshot.eval(*id).map(|eval| eval.create_index),
        Key::Alloc(id) => snapshot.alloc(*id).map(|view| view.create_index),
        Key::Node(id) => snapshot.node(*id).map(|node| node.create_index),
        Key::Deployment(id) => snapshot
            .deployment(*id)
            .map(|deployment| deployment.create_index),
        Key::NodePool(name) => snapshot.node_pool(name).map(|pool| pool.create_index),
        Key::SchedulerConfig => snapshot
            .stored_scheduler_config()
            .map(|config| config.create_index),
        Key::Volume(key) => snapshot.volume(key).map(|volume| volume.create_index),
        Key::VolumeClaim(id) => snapshot.volume_claim(*id).map(|claim| claim.create_index),
        Key::CsiVolume(key) => snapshot.csi_volume(key).map(|volume| volume.create_index),
        Key::CsiAttachment(key) => snapshot.csi_attachment(key).map(|it| it.create_index),
        // The scheduler reads none of them.
        Key::AllocClient(_)
        | Key::JobStable(..)
        | Key::JobTally(_)
        | Key::JobTags(_)
        | Key::Election(_)
        | Key::PeriodicLaunch(_)
        | Key::DispatchToken(..)
        | Key::ScalingEvents(..)
        | Key::Namespace(_)
        | Key::PlanPiece(..)
        | Key::PlanCommit(_)
        | Key::IntroductionToken(_)
        | Key::NodeIntroduction(_)
        | Key::Services(_)
        | Key::NodeRevocation(_)
        | Key::Process(_)
        | Key::Variable(_)
        | Key::LockHolder(_)
        | Key::LockDelay(_)
        | Key::Keyring => None,
    }
}
