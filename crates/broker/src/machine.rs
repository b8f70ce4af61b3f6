//! The state machine: every open evaluation is in exactly one state.
//!
//! `intake` learns from the store, `delivery` talks to workers, `timers` and `capacity` move evaluations on, and all
//! of them change states by `entries` alone.

mod capacity;
mod delivery;
mod entries;
mod intake;
mod stats;
mod timers;

use model::{EvalId, Timestamp};
use rand::SeedableRng;
use rand::rngs::StdRng;
use rustc_hash::FxHashMap;

use crate::blocked::Blocked;
use crate::config::Config;
use crate::effect::Effect;
use crate::entry::{Entry, State};
use crate::event::{Event, SessionId};
use crate::queues::{JobLocks, Ready, Timers};
use crate::sessions::Sessions;

pub use stats::Stats;

/// Delivers evaluations to workers during one leadership term.
///
/// **Invariant**: every evaluation is in the one structure that its state names and in no other; a
/// job has one evaluation at most whose state [has the lock](State::holds_lock). [`Broker::check`]
/// checks both by a full scan.
#[derive(Debug)]
pub struct Broker {
    config: Config,
    /// The create revision of the leader's election key.
    term: u64,
    rng: StdRng,
    entries: FxHashMap<EvalId, Entry>,
    ready: Ready,
    job_locks: JobLocks,
    /// Deliveries to workers, answered or not, until the store shows the outcome.
    deliveries: FxHashMap<EvalId, Outstanding>,
    delivery_count: u64,
    timers: Timers,
    blocked: Blocked,
    /// The time of the next retry of blocked evaluations that lost races; `None` while there are
    /// none.
    conflict_retry_at: Option<Timestamp>,
    /// Deliveries are paused; facts of the store are still read, so that none is missed.
    paused: bool,
    sessions: Sessions,
    /// The number of evaluations in each state, by position in [`State::ALL`].
    counts: [usize; State::ALL.len()],
    /// The last change of any evaluation when this leadership began: a bound for the writes of the
    /// jobs' earlier plans.
    base_index: u64,
}

/// A delivery whose outcome has not been seen.
#[derive(Clone, Copy, Debug)]
struct Outstanding {
    session: SessionId,
    number: u64,
    delivered_at: Timestamp,
}

impl Broker {
    /// Makes an empty broker; [`Broker::resync`] fills it.
    ///
    /// `term` is the create revision of the leader's election key, and stands in every token.
    pub fn new(config: Config, term: u64, seed: u64) -> Self {
        Self {
            config,
            term,
            rng: StdRng::seed_from_u64(seed),
            entries: FxHashMap::default(),
            ready: Ready::default(),
            job_locks: JobLocks::default(),
            deliveries: FxHashMap::default(),
            delivery_count: 0,
            timers: Timers::default(),
            blocked: Blocked::default(),
            conflict_retry_at: None,
            paused: false,
            sessions: Sessions::default(),
            counts: [0; State::ALL.len()],
            base_index: 0,
        }
    }

    /// Records one event, then delivers all evaluations that can be delivered.
    pub fn step(&mut self, now: Timestamp, event: Event) -> Vec<Effect> {
        let mut effects = Vec::new();
        match event {
            Event::Facts(facts) => {
                for fact in facts {
                    self.learn(now, fact, &mut effects);
                }
            }
            Event::SessionOpened {
                session,
                types,
                credit,
            } => {
                self.sessions.open(session, types, credit);
            }
            Event::Credit { session, credit } => self.sessions.grant(session, credit),
            Event::SessionClosed { session } => self.lose_session(now, session),
            Event::Ack {
                request,
                eval_id,
                token,
            } => {
                let result = self.ack(now, eval_id, token);
                effects.push(Effect::Reply { request, result });
            }
            Event::Nack {
                request,
                eval_id,
                token,
            } => {
                let result = self.nack(now, eval_id, token, &mut effects);
                effects.push(Effect::Reply { request, result });
            }
            Event::Extend {
                request,
                eval_id,
                token,
            } => {
                let result = self.extend(now, eval_id, token);
                effects.push(Effect::Reply { request, result });
            }
            Event::Tick => {}
        }
        self.fire_timers(now, &mut effects);
        self.deliver(now, &mut effects);
        effects
    }

    /// Returns the time at which the loop must send [`Event::Tick`]; `None` while nothing waits for
    /// time.
    pub fn next_deadline(&self) -> Option<Timestamp> {
        match (self.timers.next(), self.conflict_retry_at) {
            (Some(timer), Some(retry)) => Some(timer.min(retry)),
            (timer, retry) => timer.or(retry),
        }
    }
}
