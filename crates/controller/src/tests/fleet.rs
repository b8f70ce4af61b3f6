//! A replica, a controller and a clock that scripts drive: only this file knows the API.

use std::collections::BTreeSet;
use std::time::Duration;

use model::job::DisconnectStrategy;
use model::{
    AllocClient, Allocation, ClientStatus, EvalId, EvalStatus, Evaluation, Job, Node, NodeId,
    NodeStatus, Timestamp,
};
use placement::NodeEvals;
use state::{Change, Entity, Key, Snapshot, State};
use test_kit::builders::{allocation, evaluation, node, service};

use crate::{Config, ControllerHealth, Effect, Event, Liveness, StreamId, Transition};

pub(super) const SECOND: Duration = Duration::from_secs(1);
pub(super) const MS: Duration = Duration::from_millis(1);

pub(super) struct Fleet {
    pub(super) liveness: Liveness,
    pub(super) replica: State,
    revision: u64,
    pub(super) now: Timestamp,
    pub(super) config: Config,
    ids: u128,
    /// Everything that has come out, until it is taken.
    pub(super) effects: Vec<Effect>,
    /// Nodes that are heard of every half TTL while time passes.
    pub(super) beating: BTreeSet<u128>,
    beat_at: Timestamp,
    /// Gateways whose messages arrive while time passes. The first one brings the heartbeats.
    pub(super) speaking: BTreeSet<StreamId>,
    pub(super) controller_health: ControllerHealth,
}

/// The gateway that the nodes use.
pub(super) const GATEWAY: StreamId = StreamId(1);

pub(super) fn id(number: u128) -> NodeId {
    NodeId::from_random(number)
}

/// A service job whose allocations may be out of reach for `lost_after`.
pub(super) fn patient_job(lost_after: Duration) -> Job {
    let mut job = service("web", 1);
    job.task_groups[0].disconnect = Some(DisconnectStrategy {
        lost_after: Some(lost_after),
        stop_on_client_after: None,
        replace: true,
        reconcile: model::job::ReconcileChoice::BestScore,
    });
    job
}

impl Fleet {
    /// A leader with one gateway and ready nodes `1..=count`, all of them heard of now.
    pub(super) fn new(count: u128) -> Self {
        let mut fleet = Self::unheard(count);
        let all: Vec<u128> = (1..=count).collect();
        fleet.hear(&all);
        fleet.beating.extend(all);
        fleet
    }

    /// The same before the first heartbeat.
    pub(super) fn unheard(count: u128) -> Self {
        let config = Config::default();
        let now = Timestamp::from_millis(1_000_000);
        let mut fleet = Self {
            liveness: Liveness::new(config.clone()),
            replica: State::default(),
            revision: 0,
            now,
            config,
            ids: 1_000,
            effects: Vec::new(),
            beating: BTreeSet::new(),
            beat_at: now,
            speaking: BTreeSet::new(),
            controller_health: ControllerHealth {
                store_silent_for: Duration::ZERO,
                leads_for: SECOND,
            },
        };
        for number in 1..=count {
            fleet.put_node(number, NodeStatus::Ready);
        }
        fleet.elect();
        fleet
    }

    /// A new leader takes over, and the gateway finds it.
    pub(super) fn elect(&mut self) {
        self.liveness = Liveness::new(self.config.clone());
        let effects = self.liveness.resync(self.now, &self.snapshot());
        self.effects.extend(effects);
        self.connect(GATEWAY);
    }

    pub(super) fn connect(&mut self, stream: StreamId) {
        self.speaking.insert(stream);
        self.step(Event::Connected { stream });
    }

    pub(super) fn disconnect(&mut self, stream: StreamId) {
        self.speaking.remove(&stream);
        self.step(Event::Disconnected { stream });
    }

    pub(super) fn step(&mut self, event: Event) {
        self.step_all(vec![event]);
    }

    pub(super) fn step_all(&mut self, events: Vec<Event>) {
        let snapshot = self.snapshot();
        let effects = self
            .liveness
            .step(self.now, self.controller_health, events, &snapshot);
        self.effects.extend(effects);
    }

    pub(super) fn hear(&mut self, numbers: &[u128]) {
        self.hear_at(GATEWAY, numbers);
    }

    pub(super) fn hear_at(&mut self, stream: StreamId, numbers: &[u128]) {
        let nodes = numbers.iter().map(|number| id(*number)).collect();
        self.step(Event::Heard { stream, nodes });
    }

    /// Ticks, with a message of every gateway that speaks.
    fn tick(&mut self) {
        let heard = |stream: &StreamId| Event::Heard {
            stream: *stream,
            nodes: Vec::new(),
        };
        let mut events: Vec<Event> = self.speaking.iter().map(heard).collect();
        events.push(Event::Tick);
        self.step_all(events);
    }

    /// Lets time pass: live nodes beat, and the loop ticks whenever it is asked to.
    pub(super) fn pass(&mut self, duration: Duration) {
        let end = self.now.plus(duration);
        loop {
            let tick = self.liveness.next_deadline().unwrap_or(end);
            let beat = if self.beating.is_empty() {
                end
            } else {
                self.beat_at
            };
            let next = tick.min(beat);
            if next > end || (next == end && tick != end && beat != end) {
                break;
            }
            self.now = next.max(self.now);
            if beat <= self.now && !self.beating.is_empty() {
                self.beat_at = self.now.plus(self.config.heartbeat_ttl / 2);
                let beating: Vec<u128> = self.beating.iter().copied().collect();
                self.hear(&beating);
            }
            if self
                .liveness
                .next_deadline()
                .is_some_and(|at| at <= self.now)
            {
                self.tick();
            }
            let idle = self.liveness.next_deadline().is_none_or(|at| at > end)
                && (self.beating.is_empty() || self.beat_at > end);
            if idle {
                break;
            }
        }
        self.now = end;
    }

    pub(super) fn snapshot(&self) -> Snapshot {
        self.replica.snapshot()
    }

    pub(super) fn write(&mut self, key: Key, entity: Entity) -> u64 {
        let next = self.revision + 1;
        let created = match &key {
            Key::Node(id) => self.snapshot().node(*id).map(|node| node.create_index),
            _ => None,
        };
        self.apply(Change::Put {
            key,
            entity,
            create_index: created.unwrap_or(next),
            modify_index: next,
        });
        next
    }

    pub(super) fn delete(&mut self, key: Key) {
        self.apply(Change::Delete { key });
    }

    fn apply(&mut self, change: Change) {
        self.revision += 1;
        self.replica.apply(self.revision, [change.clone()]);
        self.liveness.note(self.now, &[change]);
        self.step(Event::Tick);
    }

    pub(super) fn put_node(&mut self, number: u128, status: NodeStatus) {
        let made = Node {
            status,
            status_updated_at: self.now,
            ..node(number)
        };
        self.write(Key::Node(id(number)), Entity::Node(made.into()));
    }

    pub(super) fn put_job(&mut self, job: &Job) {
        self.write(
            Key::JobVersion(job.key(), job.version),
            Entity::JobVersion(job.clone().into()),
        );
        self.write(Key::Job(job.key()), Entity::Job(job.clone().into()));
    }

    pub(super) fn put_alloc(&mut self, number: u128, job: &Job, node: u128) {
        self.change_alloc(number, job, node, |_| {});
    }

    pub(super) fn change_alloc(
        &mut self,
        number: u128,
        job: &Job,
        node: u128,
        change: impl FnOnce(&mut Allocation),
    ) {
        let mut alloc = allocation(number, job, id(node));
        alloc.modify_time = self.now;
        change(&mut alloc);
        self.write(Key::Alloc(alloc.id), Entity::Alloc(alloc.into()));
    }

    pub(super) fn report(&mut self, number: u128, status: ClientStatus) {
        let client = AllocClient {
            status,
            modify_time: self.now,
            ..AllocClient::default()
        };
        let key = Key::AllocClient(model::AllocId::from_random(number));
        self.write(key, Entity::AllocClient(client.into()));
    }

    /// A scheduler has looked at a job as it is now.
    pub(super) fn scheduled(&mut self, job: &Job) {
        self.ids += 1;
        let eval = Evaluation {
            status: EvalStatus::Complete,
            snapshot_index: self.revision,
            ..evaluation(self.ids, job)
        };
        self.write(Key::Eval(eval.id), Entity::Eval(eval.into()));
    }

    pub(super) fn status(&self, number: u128) -> NodeStatus {
        self.snapshot()
            .node(id(number))
            .expect("registered")
            .value
            .status
    }

    /// Takes the transitions that were asked for.
    pub(super) fn transitions(&mut self) -> Vec<Transition> {
        let mut taken = Vec::new();
        self.effects.retain(|effect| match effect {
            Effect::Transition(transition) => {
                taken.push(transition.clone());
                false
            }
            _ => true,
        });
        taken
    }

    /// Takes the transitions, whose writes fail.
    pub(super) fn refuse(&mut self) -> Vec<Transition> {
        let refused = self.transitions();
        for _ in &refused {
            self.step(Event::Written);
        }
        refused
    }

    /// Takes the transitions as (node, status), writes them, and returns them.
    pub(super) fn perform(&mut self) -> Vec<(u128, NodeStatus)> {
        let mut performed = Vec::new();
        for transition in self.transitions() {
            self.step(Event::Written);
            let snapshot = self.snapshot();
            let mut next_id = || EvalId::from_random(0);
            let writes = transition.writes(&self.config, &snapshot, self.now, &mut next_id);
            let Some(update) = writes.first() else {
                // Decided on a node that has changed since.
                continue;
            };
            let node = snapshot.node(transition.node_id).expect("registered");
            assert_eq!(node.value.status, transition.from);
            assert_eq!(update.expected_index(), node.modify_index);
            let entity = update.entity().expect("an update").clone();
            self.write(update.key().clone(), entity);
            let number = (1..10_000).find(|number| id(*number) == transition.node_id);
            performed.push((number.expect("one of ours"), transition.to));
        }
        performed
    }

    /// Returns the evaluations that a node's change would make, as (job, type, priority).
    pub(super) fn evals(&mut self, number: u128) -> Vec<Evaluation> {
        let snapshot = self.snapshot();
        let node = snapshot.node(id(number)).expect("registered").value.clone();
        let ids = &mut self.ids;
        NodeEvals::new(&snapshot).of_node(&node, self.now, &mut || {
            *ids += 1;
            EvalId::from_random(*ids)
        })
    }
}
