//! The state machine: every open evaluation is in exactly one state.

mod capacity;
mod delivery;
mod intake;
mod stats;
mod timers;

use std::sync::Arc;

use model::{EvalId, JobKey, Timestamp};
use rand::SeedableRng;
use rand::rngs::StdRng;
use rustc_hash::FxHashMap;

use crate::blocked::Blocked;
use crate::config::Config;
use crate::effect::Effect;
use crate::entry::{Entry, State};
use crate::event::{Event, Fact, SessionId};
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

    fn learn(&mut self, now: Timestamp, fact: Fact, effects: &mut Vec<Effect>) {
        match fact {
            Fact::Open(eval) => self.learn_open(now, eval, effects),
            Fact::Closed {
                eval_id,
                index,
                placed_all,
            } => {
                self.learn_closed(now, eval_id, index, placed_all, effects);
            }
            Fact::Capacity {
                class,
                node_id,
                free,
                index,
            } => {
                self.learn_capacity(now, class, node_id, free, index);
            }
            Fact::Paused(paused) => self.paused = paused,
        }
    }

    /// Moves an evaluation to `state`, whose timer fires at `due` (never: it has none).
    ///
    /// The one place where an evaluation enters and leaves the structures.
    fn set_state(&mut self, id: EvalId, state: State, due: Timestamp) {
        self.leave_state(id);
        let entry = self
            .entries
            .get_mut(&id)
            .expect("only held evaluations change state");
        entry.state = state;
        entry.due = due;
        self.counts[state as usize] += 1;
        if !due.is_never() {
            self.timers.set(due, id);
        }
        let lock = self.job_locks.get_mut(&entry.job);
        if state.holds_lock() {
            lock.owner = Some(id);
        }
        match state {
            State::Ready => self.ready.insert(entry.job_type, entry.ready_key(id)),
            State::Pending => {
                lock.pending.insert(entry.pending_key(id));
            }
            _ => {}
        }
    }

    /// Removes an evaluation from the structures of its state.
    fn leave_state(&mut self, id: EvalId) {
        let entry = &self.entries[&id];
        self.counts[entry.state as usize] -= 1;
        if !entry.due.is_never() {
            self.timers.unset(entry.due, id);
        }
        let lock = self.job_locks.get_mut(&entry.job);
        if lock.owner == Some(id) {
            lock.owner = None;
        }
        match entry.state {
            State::Ready => self.ready.remove(entry.job_type, &entry.ready_key(id)),
            State::Pending => {
                lock.pending.remove(&entry.pending_key(id));
            }
            State::Blocked => self.blocked.untrack(id),
            _ => {}
        }
    }

    /// Enqueues an evaluation: ready with its job's lock, or pending behind the lock's owner.
    fn enqueue(&mut self, now: Timestamp, id: EvalId) {
        let entry = self
            .entries
            .get_mut(&id)
            .expect("only held evaluations are enqueued");
        entry.queued_at = now;
        let state = match self.job_locks.get_mut(&entry.job).owner {
            None => State::Ready,
            Some(_) => State::Pending,
        };
        self.set_state(id, state, Timestamp::NEVER);
    }

    /// Gives a job's free lock to the best pending evaluation and cancels the others, which it
    /// supersedes.
    fn pass_lock(&mut self, now: Timestamp, job: &Arc<JobKey>) {
        let lock = self.job_locks.get_mut(job);
        if lock.owner.is_some() {
            return;
        }
        let Some(best) = lock.pending.last().map(|key| key.id) else {
            return;
        };
        let superseded: Vec<EvalId> = lock
            .pending
            .iter()
            .rev()
            .skip(1)
            .map(|key| key.id)
            .collect();
        for id in superseded {
            self.supersede(now, id);
        }
        self.set_state(best, State::Ready, Timestamp::NEVER);
    }

    /// Marks an evaluation as superseded; it is canceled with others of the same time window.
    fn supersede(&mut self, now: Timestamp, id: EvalId) {
        let window = self.config.cancel_window.as_nanos().max(1);
        let window = u64::try_from(window).unwrap_or(u64::MAX);
        let due = Timestamp((now.0 / window).saturating_add(1).saturating_mul(window));
        self.set_state(id, State::Superseded, due);
    }

    /// Removes an evaluation that the store has closed, and releases its job's lock if it had it.
    fn drop_eval(&mut self, now: Timestamp, id: EvalId) -> Entry {
        self.leave_state(id);
        self.forget_delivery(id);
        let entry = self
            .entries
            .remove(&id)
            .expect("only held evaluations are dropped");
        self.pass_lock(now, &entry.job);
        self.job_locks.release(&entry.job);
        entry
    }

    fn forget_delivery(&mut self, id: EvalId) -> Option<Outstanding> {
        let delivery = self.deliveries.remove(&id)?;
        self.sessions.answered(delivery.session, id);
        Some(delivery)
    }

    fn job_of(&self, id: EvalId) -> Arc<JobKey> {
        Arc::clone(&self.entries[&id].job)
    }
}
