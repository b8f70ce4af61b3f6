//! Random histories of holders against a store with leases: two holders never overlap, not even in their own
//! view, and none begins before the delay of the one before is over, unless that released its lock.

use std::time::Duration;

use model::{Timestamp, VariableKey, VariableLock};
use proptest::prelude::*;

use super::{LockRefusal, Locked, Stored};

const TTL: u64 = 10;
const DELAY: u64 = 5;
const ACTORS: usize = 3;

fn variable() -> VariableKey {
    VariableKey::new("default", "app/leader")
}

/// A key under its lease.
#[derive(Clone, Debug)]
struct Leased {
    stored: Stored,
    ends: u64,
}

/// The store: both keys, and its clock.
#[derive(Debug, Default)]
struct Store {
    now: u64,
    revision: u64,
    holder: Option<Leased>,
    delay: Option<Leased>,
}

impl Store {
    fn pass(&mut self, seconds: u64) {
        self.now += seconds;
        let now = self.now;
        for key in [&mut self.holder, &mut self.delay] {
            *key = key.take().filter(|leased| leased.ends > now);
        }
    }

    fn read(&self) -> Locked {
        let stored = |key: &Option<Leased>| key.as_ref().map(|leased| leased.stored.clone());
        Locked {
            holder: stored(&self.holder),
            delay: stored(&self.delay),
        }
    }

    /// Creates both keys under leases granted at `granted`, if there are none.
    fn create(&mut self, id: &str, granted: u64) -> bool {
        let is_alive = granted + TTL > self.now;
        if self.holder.is_some() || self.delay.is_some() || !is_alive {
            return false;
        }
        self.revision += 1;
        let stored = Stored {
            lock: VariableLock {
                id: id.to_owned(),
                ttl: Duration::from_secs(TTL),
                delay: Duration::from_secs(DELAY),
                acquired_at: Timestamp(self.now),
                holder_lease: 1,
                delay_lease: 2,
            },
            mod_revision: self.revision,
        };
        let leased = |seconds| {
            Some(Leased {
                stored: stored.clone(),
                ends: granted + seconds,
            })
        };
        self.holder = leased(TTL);
        self.delay = leased(TTL + DELAY);
        true
    }

    /// Renews one lease of this acquisition, if it lives.
    fn renew(&mut self, revision: u64, is_delay: bool) -> bool {
        let now = self.now;
        let (key, seconds) = match is_delay {
            true => (&mut self.delay, TTL + DELAY),
            false => (&mut self.holder, TTL),
        };
        let own = key.as_mut().filter(|it| it.stored.mod_revision == revision);
        let is_alive = own.is_some();
        if let Some(leased) = own {
            leased.ends = now + seconds;
        }
        is_alive
    }

    /// Deletes both keys as they were read.
    fn delete(&mut self, read: &Locked) -> bool {
        let is_same = self.read() == *read;
        if is_same {
            self.holder = None;
            self.delay = None;
        }
        is_same
    }
}

/// A request on its way: what was read when it was sent.
#[derive(Clone, Debug)]
struct Sent {
    op: Op,
    at: u64,
    read: Locked,
    renews_holder: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Op {
    Acquire,
    Renew,
    Release,
}

/// A holder, and when its own clock ends its lock.
#[derive(Clone, Debug, Default)]
struct Actor {
    id: String,
    attempts: u32,
    deadline: u64,
    sent: Option<Sent>,
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Send(usize, Op),
    Arrive(usize),
    /// The answer is lost: the actor does not learn the outcome.
    Lose(usize),
    Pass(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let op = prop_oneof![Just(Op::Acquire), Just(Op::Renew), Just(Op::Release)];
    let step = prop_oneof![
        4 => (0..ACTORS, op).prop_map(|(actor, op)| Step::Send(actor, op)),
        6 => (0..ACTORS).prop_map(Step::Arrive),
        1 => (0..ACTORS).prop_map(Step::Lose),
        3 => (1..8_u64).prop_map(Step::Pass),
    ];
    prop::collection::vec(step, 1..120)
}

#[derive(Debug, Default)]
struct LockHistory {
    store: Store,
    actors: [Actor; ACTORS],
    /// Until then the last holder that has not released its lock may still stop its work.
    reserved: u64,
    /// A lock was acquired before.
    is_violated: bool,
}

impl LockHistory {
    fn send(&mut self, number: usize, op: Op) {
        let (at, read) = (self.store.now, self.store.read());
        let actor = &mut self.actors[number];
        if actor.sent.is_some() {
            return;
        }
        match op {
            Op::Acquire => {
                if actor.deadline > at {
                    return;
                }
                actor.attempts += 1;
                actor.id = format!("{number}-{}", actor.attempts);
                if read.acquire(&variable(), &actor.id).is_err() {
                    return;
                }
            }
            Op::Renew => {
                if read.held(&variable(), &actor.id).is_err() {
                    return;
                }
            }
            // The holder stops its work before it asks.
            Op::Release => {
                actor.deadline = 0;
                if read.release(&variable(), &actor.id).is_err() {
                    return;
                }
            }
        }
        actor.sent = Some(Sent {
            op,
            at,
            read,
            renews_holder: false,
        });
    }

    fn arrive(&mut self, number: usize, is_answered: bool) {
        let Some(mut sent) = self.actors[number].sent.take() else {
            return;
        };
        let id = self.actors[number].id.clone();
        let holds = match sent.op {
            Op::Acquire => {
                let is_created = self.store.create(&id, sent.at);
                self.is_violated |= is_created && self.store.now < self.reserved;
                is_created
            }
            Op::Release => {
                if self.store.delete(&sent.read) {
                    self.reserved = 0;
                }
                false
            }
            Op::Renew => {
                let revision = sent.read.held(&variable(), &id).unwrap().mod_revision;
                if !sent.renews_holder {
                    // The second lease is renewed later: the request is still on its way.
                    if self.store.renew(revision, true) {
                        sent.renews_holder = true;
                        self.actors[number].sent = Some(sent);
                    }
                    return;
                }
                self.store.renew(revision, false)
            }
        };
        if holds && is_answered {
            let actor = &mut self.actors[number];
            actor.deadline = sent.at + TTL;
            self.reserved = sent.at + TTL + DELAY;
        }
    }

    fn play(&mut self, step: Step) {
        match step {
            Step::Send(actor, op) => self.send(actor, op),
            Step::Arrive(actor) => self.arrive(actor, true),
            Step::Lose(actor) => self.arrive(actor, false),
            Step::Pass(seconds) => self.store.pass(seconds),
        }
    }

    fn holders(&self) -> Vec<&str> {
        let now = self.store.now;
        let holding = self.actors.iter().filter(|actor| actor.deadline > now);
        holding.map(|actor| actor.id.as_str()).collect()
    }
}

proptest! {
    #[test]
    fn two_holders_never_overlap(steps in steps()) {
        let mut history = LockHistory::default();
        for step in steps {
            history.play(step);
            let holders = history.holders();
            prop_assert!(holders.len() <= 1, "{:?} {:?}", step, history);
            if let Some(id) = holders.first() {
                let locked = history.store.read();
                prop_assert!(locked.held(&variable(), id).is_ok(), "{:?} {:?}", step, history);
            }
            prop_assert!(!history.is_violated, "{:?} {:?}", step, history);
        }
    }
}

fn locked(store: &mut Store) -> Locked {
    assert!(store.create("a", store.now));
    store.read()
}

#[test]
fn scenario_091_an_unreleased_lock_is_in_its_delay_and_then_free() {
    let mut store = Store::default();
    locked(&mut store);
    let acquire = |store: &Store| {
        store
            .read()
            .acquire(&variable(), "b")
            .map(|it| it.is_some())
    };
    store.pass(TTL - 1);
    assert!(matches!(acquire(&store), Err(LockRefusal::Taken { .. })));
    store.pass(1);
    assert!(matches!(acquire(&store), Err(LockRefusal::InDelay { .. })));
    store.pass(DELAY - 1);
    assert!(matches!(acquire(&store), Err(LockRefusal::InDelay { .. })));
    store.pass(1);
    assert_eq!(acquire(&store), Ok(false));
}

#[test]
fn a_write_needs_the_holders_lock_id_or_no_lock() {
    let mut store = Store::default();
    let free = store.read();
    assert_eq!(free.write(&variable(), "").unwrap().len(), 2);
    assert!(matches!(
        free.write(&variable(), "a"),
        Err(LockRefusal::NotHeld { .. })
    ));
    let held = locked(&mut store);
    assert_eq!(held.write(&variable(), "a").unwrap().len(), 1);
    let refusal = held.write(&variable(), "").unwrap_err();
    let text = refusal.to_string();
    assert!(
        text.contains("attempting to modify locked variable"),
        "{text}"
    );
    assert!(text.contains("locked by a;"), "{text}");
    assert!(matches!(
        held.write(&variable(), "b"),
        Err(LockRefusal::NotHeld { .. })
    ));
    store.pass(TTL);
    let delayed = store.read();
    assert!(matches!(
        delayed.write(&variable(), ""),
        Err(LockRefusal::Locked { .. })
    ));
    assert!(matches!(
        delayed.write(&variable(), "a"),
        Err(LockRefusal::NotHeld { .. })
    ));
}

#[test]
fn a_repeated_request_finds_the_lock_that_it_holds() {
    let mut store = Store::default();
    let held = locked(&mut store);
    assert!(held.acquire(&variable(), "a").unwrap().is_some());
    store.pass(TTL);
    let lost = store.read();
    assert!(
        lost.acquire(&variable(), "a").is_err(),
        "a lost lock is not held"
    );
    assert!(lost.release(&variable(), "a").is_err());
}
