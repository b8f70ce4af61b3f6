//! A broker, a store and a clock that scripts drive: only this file knows the API.
//!
//! The store is the real replica, so facts reach the broker as they do in the service.

use std::time::Duration;

use model::{
    AllocClient, AllocId, Allocation, ClientStatus, EvalId, EvalStatus, Evaluation, JobKey,
    JobType, Node, NodeEligibility, NodeId, NodeStatus, SchedulerConfiguration, Timestamp,
    TriggeredBy,
};
use state::{Change, Entity, Key, Snapshot, State as Replica};
use test_kit::builders::{allocation, batch, node};

use crate::facts::Reader;
use crate::{
    Broker, Config, Delivery, Effect, Event, JobTypes, NotOutstanding, RequestId, SessionId, State,
    Token,
};

/// The only worker of scripts that are not about several.
pub(super) const WORKER: SessionId = SessionId(1);

pub(super) struct Fixture {
    pub(super) broker: Broker,
    pub(super) replica: Replica,
    reader: Reader,
    pub(super) revision: u64,
    pub(super) now: Timestamp,
    pub(super) term: u64,
    pub(super) config: Config,
    /// Everything that has come out, until it is taken.
    pub(super) effects: Vec<Effect>,
    requests: u64,
}

pub(super) fn eval_id(number: u128) -> EvalId {
    EvalId::from_random(number)
}

pub(super) fn node_id(number: u128) -> NodeId {
    NodeId::from_random(number)
}

/// A pending evaluation of a service job of priority 50.
pub(super) fn eval(number: u128, job: &str) -> Evaluation {
    Evaluation::pending(
        eval_id(number),
        JobKey::new("default", job),
        JobType::Service,
        50,
        TriggeredBy::JobRegister,
        Timestamp::from_millis(1),
    )
}

/// A blocked evaluation that knows these classes.
pub(super) fn blocked(
    number: u128,
    job: &str,
    snapshot_index: u64,
    classes: &[(&str, bool)],
) -> Evaluation {
    Evaluation {
        status: EvalStatus::Blocked,
        triggered_by: TriggeredBy::QueuedAllocs,
        snapshot_index,
        class_eligibility: classes
            .iter()
            .map(|(class, ok)| ((*class).to_owned(), *ok))
            .collect(),
        ..eval(number, job)
    }
}

impl Fixture {
    pub(super) fn new() -> Self {
        let config = Config::default();
        Self {
            broker: Broker::new(config.clone(), 7, 1),
            replica: Replica::default(),
            reader: Reader::default(),
            revision: 10,
            now: Timestamp::from_millis(1_000_000),
            term: 7,
            config,
            effects: Vec::new(),
            requests: 0,
        }
    }

    /// A fixture with one worker that takes everything.
    pub(super) fn with_worker(credit: u32) -> Self {
        let mut fixture = Self::new();
        fixture.open(WORKER, &JobType::ALL, credit);
        fixture
    }

    pub(super) fn step(&mut self, event: Event) {
        let effects = self.broker.step(self.now, event);
        self.broker.check();
        self.effects.extend(effects);
    }

    pub(super) fn open(&mut self, session: SessionId, types: &[JobType], credit: u32) {
        let types: JobTypes = types.iter().copied().collect();
        self.step(Event::SessionOpened {
            session,
            types,
            credit,
        });
    }

    pub(super) fn credit(&mut self, credit: u32) {
        self.step(Event::Credit {
            session: WORKER,
            credit,
        });
    }

    /// Lets time pass, ticking whenever the broker asks for it.
    pub(super) fn pass(&mut self, duration: Duration) {
        let end = self.now.plus(duration);
        while let Some(deadline) = self.broker.next_deadline().filter(|at| *at <= end) {
            self.now = deadline.max(self.now);
            self.step(Event::Tick);
        }
        self.now = end;
    }

    /// Writes one transaction to the store and sends its changes to the broker.
    pub(super) fn write(&mut self, changes: Vec<Change>) -> u64 {
        self.revision += 1;
        let changes = changes
            .into_iter()
            .map(|change| self.stamped(change))
            .collect::<Vec<_>>();
        self.replica.apply(self.revision, changes.clone());
        let facts = self
            .reader
            .read(self.revision, &changes, &self.replica.snapshot());
        self.step(Event::Facts(facts));
        self.revision
    }

    /// Fills in the revisions of a put.
    fn stamped(&self, change: Change) -> Change {
        let Change::Put { key, entity, .. } = change else {
            return change;
        };
        let created = match &key {
            Key::Eval(id) => self.snapshot().eval(*id).map(|eval| eval.create_index),
            Key::Node(id) => self.snapshot().node(*id).map(|node| node.create_index),
            _ => None,
        };
        Change::Put {
            key,
            entity,
            create_index: created.unwrap_or(self.revision),
            modify_index: self.revision,
        }
    }

    pub(super) fn snapshot(&self) -> Snapshot {
        self.replica.snapshot()
    }

    pub(super) fn put(&mut self, evals: &[Evaluation]) -> u64 {
        self.write(evals.iter().map(put_eval).collect())
    }

    /// Writes an evaluation at a given revision, for scenarios that name revisions.
    pub(super) fn put_at(&mut self, revision: u64, eval: Evaluation) {
        assert!(revision > self.revision, "revision {revision} is past");
        self.revision = revision - 1;
        self.put(&[eval]);
    }

    /// Writes the scheduler's configuration, with the broker paused or not.
    pub(super) fn pause(&mut self, pause_eval_broker: bool) -> u64 {
        let config = SchedulerConfiguration {
            pause_eval_broker,
            ..SchedulerConfiguration::default()
        };
        self.write(vec![Change::Put {
            key: Key::SchedulerConfig,
            entity: Entity::SchedulerConfig(Box::new(config)),
            create_index: 0,
            modify_index: 0,
        }])
    }

    /// Writes the outcome of an evaluation: everything has a place.
    pub(super) fn complete(&mut self, id: EvalId) -> u64 {
        self.finish(id, EvalStatus::Complete)
    }

    pub(super) fn finish(&mut self, id: EvalId, status: EvalStatus) -> u64 {
        let eval = self.stored(id);
        self.put(&[Evaluation { status, ..eval }])
    }

    pub(super) fn stored(&self, id: EvalId) -> Evaluation {
        self.snapshot().eval(id).expect("stored").value.clone()
    }

    /// Writes a ready, eligible node.
    pub(super) fn put_node(&mut self, node: NodeId, class: &str) -> u64 {
        self.put_node_as(node, class, NodeStatus::Ready, NodeEligibility::Eligible)
    }

    pub(super) fn put_node_as(
        &mut self,
        id: NodeId,
        class: &str,
        status: NodeStatus,
        eligibility: NodeEligibility,
    ) -> u64 {
        let node = Node {
            id,
            computed_class: class.to_owned(),
            status,
            eligibility,
            ..node(1)
        };
        self.write(vec![Change::Put {
            key: Key::Node(id),
            entity: Entity::Node(Box::new(node)),
            create_index: 0,
            modify_index: 0,
        }])
    }

    pub(super) fn put_alloc(&mut self, id: AllocId, node_id: NodeId) {
        let alloc = Allocation {
            id,
            ..allocation(1, &batch("other", 1), node_id)
        };
        self.write(vec![Change::Put {
            key: Key::Alloc(id),
            entity: Entity::Alloc(Box::new(alloc)),
            create_index: 0,
            modify_index: 0,
        }]);
    }

    /// Writes the node's report of an allocation.
    pub(super) fn report(&mut self, id: AllocId, status: ClientStatus) -> u64 {
        let client = AllocClient {
            status,
            ..AllocClient::default()
        };
        self.write(vec![Change::Put {
            key: Key::AllocClient(id),
            entity: Entity::AllocClient(Box::new(client)),
            create_index: 0,
            modify_index: 0,
        }])
    }

    fn request(&mut self) -> RequestId {
        self.requests += 1;
        RequestId(self.requests)
    }

    pub(super) fn ack(&mut self, id: EvalId, token: Token) -> Result<(), NotOutstanding> {
        let request = self.request();
        self.step(Event::Ack {
            request,
            eval_id: id,
            token,
        });
        self.take_reply(request)
    }

    pub(super) fn nack(&mut self, id: EvalId, token: Token) -> Result<(), NotOutstanding> {
        let request = self.request();
        self.step(Event::Nack {
            request,
            eval_id: id,
            token,
        });
        self.take_reply(request)
    }

    pub(super) fn extend(&mut self, id: EvalId, token: Token) -> Result<(), NotOutstanding> {
        let request = self.request();
        self.step(Event::Extend {
            request,
            eval_id: id,
            token,
        });
        self.take_reply(request)
    }

    fn take_reply(&mut self, wanted: RequestId) -> Result<(), NotOutstanding> {
        let position = self
            .effects
            .iter()
            .position(
                |effect| matches!(effect, Effect::Reply { request, .. } if *request == wanted),
            )
            .expect("every request is answered in its own step");
        match self.effects.remove(position) {
            Effect::Reply { result, .. } => result,
            _ => unreachable!("matched above"),
        }
    }

    /// Takes the deliveries out of the effects so far.
    pub(super) fn deliveries(&mut self) -> Vec<Delivery> {
        let mut taken = Vec::new();
        self.effects.retain(|effect| match effect {
            Effect::Deliver(delivery) => {
                taken.push(delivery.clone());
                false
            }
            _ => true,
        });
        taken
    }

    pub(super) fn delivered(&mut self) -> Vec<EvalId> {
        self.deliveries()
            .into_iter()
            .map(|delivery| delivery.eval_id)
            .collect()
    }

    /// Takes the only delivery.
    pub(super) fn delivery(&mut self) -> Delivery {
        let mut deliveries = self.deliveries();
        assert_eq!(deliveries.len(), 1, "{deliveries:?}");
        deliveries.remove(0)
    }

    /// Takes the ids that were asked to be cancelled.
    pub(super) fn cancelled(&mut self) -> Vec<EvalId> {
        let mut taken = Vec::new();
        self.effects.retain(|effect| match effect {
            Effect::Cancel { eval_ids } => {
                taken.extend(eval_ids);
                false
            }
            _ => true,
        });
        taken
    }

    /// Takes the evaluations that were asked to be failed, with their follow-ups' delays.
    pub(super) fn failed(&mut self) -> Vec<(EvalId, Duration)> {
        let mut taken = Vec::new();
        self.effects.retain(|effect| match effect {
            Effect::Fail {
                eval_id,
                follow_up_after,
            } => {
                taken.push((*eval_id, *follow_up_after));
                false
            }
            _ => true,
        });
        taken
    }

    pub(super) fn state(&self, number: u128) -> Option<State> {
        self.broker.state_of(eval_id(number))
    }

    /// A new leader over the same store.
    pub(super) fn elect(&mut self) {
        self.term += 1;
        self.broker = Broker::new(self.config.clone(), self.term, self.term);
        self.resync();
    }

    pub(super) fn resync(&mut self) {
        self.reader = Reader::new(&self.replica.snapshot());
        let effects = self.broker.resync(self.now, &self.replica.snapshot());
        self.broker.check();
        self.effects.extend(effects);
    }
}

pub(super) fn put_eval(eval: &Evaluation) -> Change {
    Change::Put {
        key: Key::Eval(eval.id),
        entity: Entity::Eval(Box::new(eval.clone())),
        create_index: 0,
        modify_index: 0,
    }
}
