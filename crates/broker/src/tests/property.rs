//! Random histories: nothing is lost, no job is with two workers, and everything ends.

use std::collections::BTreeMap;
use std::time::Duration;

use model::{EvalId, EvalStatus, Evaluation, JobType, TriggeredBy};
use proptest::prelude::*;

use super::fixture::{Fixture, blocked, eval, eval_id, node_id};
use crate::{Effect, Event, SessionId, Token, outcome};

/// An action of the history; numbers pick among the existing objects.
#[derive(Clone, Debug)]
enum Act {
    Create {
        job: u8,
        priority: u8,
        delay_s: u8,
        batch: bool,
    },
    CreateBlocked {
        job: u8,
        class: u8,
        behind: u8,
        conflicts: bool,
    },
    Capacity {
        class: u8,
    },
    Open {
        batch_only: bool,
        credit: u8,
    },
    Close {
        pick: u8,
    },
    Credit {
        pick: u8,
        credit: u8,
    },
    /// A worker writes its outcome: all placed, or blocked again, or failed; then acks, or not.
    Finish {
        pick: u8,
        outcome: u8,
        ack: bool,
    },
    AckAlone {
        pick: u8,
    },
    Nack {
        pick: u8,
    },
    Extend {
        pick: u8,
    },
    Pass {
        ms: u32,
    },
    /// The writes that the broker requested are committed.
    Write,
    Elect,
    Resync,
    /// The operator pauses the broker, or lets it go on.
    Pause {
        paused: bool,
    },
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        6 => (0..4u8, 1..4u8, 0..3u8, any::<bool>()).prop_map(|(job, priority, delay_s, batch)| {
            Act::Create { job, priority, delay_s, batch }
        }),
        2 => (0..4u8, 0..3u8, 0..4u8, any::<bool>()).prop_map(|(job, class, behind, conflicts)| {
            Act::CreateBlocked { job, class, behind, conflicts }
        }),
        2 => (0..3u8).prop_map(|class| Act::Capacity { class }),
        2 => (any::<bool>(), 0..4u8).prop_map(|(batch_only, credit)| Act::Open { batch_only, credit }),
        1 => any::<u8>().prop_map(|pick| Act::Close { pick }),
        4 => (any::<u8>(), 1..4u8).prop_map(|(pick, credit)| Act::Credit { pick, credit }),
        5 => (any::<u8>(), 0..4u8, any::<bool>())
            .prop_map(|(pick, outcome, ack)| Act::Finish { pick, outcome, ack }),
        1 => any::<u8>().prop_map(|pick| Act::AckAlone { pick }),
        2 => any::<u8>().prop_map(|pick| Act::Nack { pick }),
        1 => any::<u8>().prop_map(|pick| Act::Extend { pick }),
        4 => (0..70_000u32).prop_map(|ms| Act::Pass { ms }),
        3 => Just(Act::Write),
        1 => Just(Act::Elect),
        1 => Just(Act::Resync),
        1 => any::<bool>().prop_map(|paused| Act::Pause { paused }),
    ]
}

/// A random history of one broker, with workers that hold deliveries and writes that may get lost.
struct History {
    fixture: Fixture,
    sessions: Vec<SessionId>,
    session_count: u64,
    /// Deliveries that workers believe they hold, given up or not.
    deliveries: Vec<(EvalId, Token)>,
    created: u128,
    /// Every token ever seen with its evaluation.
    tokens: BTreeMap<(u64, u64), EvalId>,
}

impl History {
    fn new() -> Self {
        Self {
            fixture: Fixture::new(),
            sessions: Vec::new(),
            session_count: 0,
            deliveries: Vec::new(),
            created: 0,
            tokens: BTreeMap::new(),
        }
    }

    fn next_id(&mut self) -> u128 {
        self.created += 1;
        self.created
    }

    fn perform(&mut self, act: &Act) {
        match *act {
            Act::Create {
                job,
                priority,
                delay_s,
                batch,
            } => {
                let number = self.next_id();
                let wait = self.fixture.now.plus(Duration::from_secs(delay_s.into()));
                let made = Evaluation {
                    priority: priority * 20,
                    job_type: if batch {
                        JobType::Batch
                    } else {
                        JobType::Service
                    },
                    wait_until: if delay_s == 0 {
                        model::Timestamp::NEVER
                    } else {
                        wait
                    },
                    ..eval(number, &format!("j{job}"))
                };
                self.put(&[made]);
            }
            Act::CreateBlocked {
                job,
                class,
                behind,
                conflicts,
            } => {
                let number = self.next_id();
                let seen = self.fixture.revision - u64::from(behind);
                let mut made = blocked(
                    number,
                    &format!("j{job}"),
                    seen,
                    &[(CLASSES[class as usize], false)],
                );
                if conflicts {
                    made.triggered_by = TriggeredBy::MaxPlanAttempts;
                }
                self.put(&[made]);
            }
            Act::Capacity { class } => {
                let number = 1_000 + self.next_id();
                self.fixture
                    .put_node(node_id(number), CLASSES[class as usize]);
            }
            Act::Open { batch_only, credit } => {
                let types = if batch_only {
                    &[JobType::Batch][..]
                } else {
                    &JobType::ALL[..]
                };
                self.open(types, credit.into());
            }
            Act::Close { pick } => {
                if let Some(position) = position(pick, self.sessions.len()) {
                    let session = self.sessions.remove(position);
                    self.fixture.step(Event::SessionClosed { session });
                }
            }
            Act::Credit { pick, credit } => {
                if let Some(position) = position(pick, self.sessions.len()) {
                    let session = self.sessions[position];
                    self.fixture.step(Event::Credit {
                        session,
                        credit: credit.into(),
                    });
                }
            }
            Act::Finish { pick, outcome, ack } => {
                if let Some(position) = position(pick, self.deliveries.len()) {
                    let (id, token) = self.deliveries.remove(position);
                    self.finish(id, outcome);
                    if ack {
                        // Refused or not: what counts is in the store.
                        let _ = self.fixture.ack(id, token);
                    }
                }
            }
            Act::AckAlone { pick } => {
                if let Some(position) = position(pick, self.deliveries.len()) {
                    let (id, token) = self.deliveries.remove(position);
                    let _ = self.fixture.ack(id, token);
                }
            }
            Act::Nack { pick } => {
                if let Some(position) = position(pick, self.deliveries.len()) {
                    let (id, token) = self.deliveries.remove(position);
                    let _ = self.fixture.nack(id, token);
                }
            }
            Act::Extend { pick } => {
                if let Some(position) = position(pick, self.deliveries.len()) {
                    let (id, token) = self.deliveries[position];
                    let _ = self.fixture.extend(id, token);
                }
            }
            Act::Pass { ms } => self.fixture.pass(Duration::from_millis(ms.into())),
            Act::Write => self.write(),
            Act::Elect => {
                self.sessions.clear();
                self.fixture.elect();
            }
            Act::Resync => self.fixture.resync(),
            Act::Pause { paused } => {
                self.fixture.pause(paused);
            }
        }
        self.collect();
        self.check();
    }

    /// Writes, and performs the resulting deliveries before the next write.
    fn put(&mut self, evals: &[Evaluation]) {
        self.fixture.put(evals);
        self.collect();
    }

    fn open(&mut self, types: &[JobType], credit: u32) {
        self.session_count += 1;
        let session = SessionId(self.session_count);
        self.sessions.push(session);
        self.fixture.open(session, types, credit);
        self.collect();
    }

    /// Writes an outcome, if the store still has the evaluation open: that is its compare.
    fn finish(&mut self, id: EvalId, outcome: u8) {
        let stored = self.fixture.stored(id);
        if stored.status.is_terminal() {
            return;
        }
        let value = match outcome {
            0 => Evaluation {
                status: EvalStatus::Blocked,
                snapshot_index: self.fixture.revision,
                class_eligibility: [(CLASSES[0].to_owned(), true)].into(),
                ..stored
            },
            1 => Evaluation {
                status: EvalStatus::Failed,
                ..stored
            },
            _ => Evaluation {
                status: EvalStatus::Complete,
                ..stored
            },
        };
        self.put(&[value]);
    }

    /// Commits the writes that the broker requested, as the service does: only for open
    /// evaluations.
    fn write(&mut self) {
        let now = self.fixture.now;
        for id in self.fixture.cancelled() {
            let stored = self.fixture.stored(id);
            if !stored.status.is_terminal() {
                self.put(&[outcome::canceled(&stored, None, now)]);
            }
        }
        for (id, after) in self.fixture.failed() {
            let stored = self.fixture.stored(id);
            if !stored.status.is_terminal() {
                let next = eval_id(self.next_id());
                let failed = outcome::failed(&stored, 3, Some(next), now);
                self.put(&[failed, outcome::follow_up(&stored, next, now, after)]);
            }
        }
    }

    /// Gives deliveries to their workers.
    fn collect(&mut self) {
        let paused = self.fixture.snapshot().scheduler_config().pause_eval_broker;
        for delivery in self.fixture.deliveries() {
            assert!(!paused, "delivered while paused");
            assert!(
                self.sessions.contains(&delivery.session),
                "delivered to a closed session"
            );
            let stored = self.fixture.stored(delivery.eval_id);
            assert!(
                !stored.status.is_terminal(),
                "delivered {} after its end",
                delivery.eval_id
            );
            assert!(
                stored.wait_until <= self.fixture.now,
                "delivered before its time"
            );
            let token = (delivery.token.term, delivery.token.number);
            assert_eq!(
                self.tokens.insert(token, delivery.eval_id),
                None,
                "a token twice"
            );
            self.deliveries.push((delivery.eval_id, delivery.token));
        }
        self.fixture
            .effects
            .retain(|effect| matches!(effect, Effect::Cancel { .. } | Effect::Fail { .. }));
    }

    /// Checks that the broker holds every open evaluation, and no other.
    fn check(&self) {
        let snapshot = self.fixture.snapshot();
        let mut open = 0;
        for eval in snapshot.open_evals() {
            open += 1;
            let id = eval.value.id;
            assert!(
                self.fixture.broker.state_of(id).is_some(),
                "{id} is nowhere"
            );
        }
        assert_eq!(
            self.fixture.broker.len(),
            open,
            "the broker holds an evaluation that is not open"
        );
    }

    /// No more faults: writes happen, one worker takes everything and does it well.
    fn settle(&mut self) {
        self.perform(&Act::Pause { paused: false });
        self.open(&JobType::ALL, 1_000);
        let worker = *self.sessions.last().expect("just opened");
        for _ in 0..200 {
            self.perform(&Act::Write);
            for (id, token) in std::mem::take(&mut self.deliveries) {
                self.finish(id, 2);
                let _ = self.fixture.ack(id, token);
            }
            self.collect();
            if self.fixture.broker.is_empty() {
                return;
            }
            self.fixture.step(Event::Credit {
                session: worker,
                credit: 10,
            });
            for class in 0..3 {
                self.perform(&Act::Capacity { class });
            }
            self.perform(&Act::Pass { ms: 61_000 });
        }
        panic!("still held: {:?}", self.fixture.broker.stats());
    }
}

const CLASSES: [&str; 3] = ["c0", "c1", "c2"];

fn position(pick: u8, len: usize) -> Option<usize> {
    (len > 0).then(|| usize::from(pick) % len)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn no_evaluation_is_lost_and_in_the_end_none_is_left(acts in prop::collection::vec(act(), 1..120)) {
        let mut history = History::new();
        for act in &acts {
            history.perform(act);
        }
        history.settle();
    }
}
