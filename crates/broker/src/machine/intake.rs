//! Intake of facts from the store: single changes, and whole snapshots.

use std::sync::Arc;

use model::{EvalId, Timestamp};
use rustc_hash::FxHashSet;
use state::{Snapshot, Table};

use super::Broker;
use crate::effect::Effect;
use crate::entry::{Entry, State};
use crate::event::{Fact, OpenEval};
use crate::facts;

impl Broker {
    /// Reconciles the broker with all open evaluations of `snapshot`: after an election, and whenever
    /// the change feed was interrupted.
    ///
    /// Deliveries stay with their workers. Capacity gains after a blocked evaluation's snapshot are
    /// read from the nodes and allocations themselves, so a gain between two leaders is not missed.
    pub fn resync(&mut self, now: Timestamp, snapshot: &Snapshot) -> Vec<Effect> {
        let mut effects = Vec::new();
        self.base_index = self.base_index.max(snapshot.table_index(Table::Evals));
        self.paused = snapshot.scheduler_config().pause_eval_broker;
        for fact in facts::capacity(snapshot) {
            self.learn(now, fact, &mut effects);
        }
        let mut open = FxHashSet::default();
        for eval in snapshot.open_evals() {
            open.insert(eval.value.id);
            self.learn_open(
                now,
                OpenEval::new(&eval.value, eval.create_index, eval.modify_index, snapshot),
                &mut effects,
            );
        }
        let mut closed: Vec<EvalId> = self
            .entries
            .keys()
            .filter(|id| !open.contains(*id))
            .copied()
            .collect();
        closed.sort_unstable();
        for eval_id in closed {
            let fact = facts::closed(snapshot, eval_id);
            self.learn(now, fact, &mut effects);
        }
        self.fire_timers(now, &mut effects);
        self.deliver(now, &mut effects);
        effects
    }

    /// Takes note of a fact of the store.
    pub(super) fn learn(&mut self, now: Timestamp, fact: Fact, effects: &mut Vec<Effect>) {
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

    fn learn_open(&mut self, now: Timestamp, eval: OpenEval, effects: &mut Vec<Effect>) {
        let Some(entry) = self.entries.get(&eval.id) else {
            self.admit(now, eval);
            return;
        };
        if eval.modify_index <= entry.modify_index {
            return;
        }
        let (id, modify_index) = (eval.id, eval.modify_index);
        match (&eval.blocked, entry.state) {
            // A scheduler could not place all of it (again): the outcome of a delivery, perhaps of
            // one that had been given up.
            (Some(_), _) => self.block_again(now, eval, effects),
            (None, State::Blocked) => {
                self.drop_eval(now, id);
                self.admit(now, eval);
            }
            (None, _) => self.touch(id, modify_index),
        }
    }

    fn block_again(&mut self, now: Timestamp, eval: OpenEval, effects: &mut Vec<Effect>) {
        self.note_outcome(now, eval.id, effects);
        self.drop_eval(now, eval.id);
        self.admit(now, eval);
    }

    fn learn_closed(
        &mut self,
        now: Timestamp,
        id: EvalId,
        index: u64,
        placed_all: bool,
        effects: &mut Vec<Effect>,
    ) {
        if !self.entries.contains_key(&id) {
            return;
        }
        self.touch(id, index);
        self.note_outcome(now, id, effects);
        if placed_all {
            // Nothing is left to wait for.
            for blocked in self.blocked.of_job(&self.job_of(id)) {
                if blocked != id {
                    self.supersede(now, blocked);
                }
            }
        }
        self.drop_eval(now, id);
    }

    /// Adds an evaluation.
    fn admit(&mut self, now: Timestamp, eval: OpenEval) {
        let job = self.job_locks.hold(&eval.job, eval.modify_index);
        let entry = Entry::new(&eval, job, now);
        self.counts[entry.state as usize] += 1;
        let job = Arc::clone(&entry.job);
        self.entries.insert(eval.id, entry);
        match eval.blocked {
            Some(on) => self.block(now, eval.id, &job, eval.create_index, *on),
            None if eval.wait_until > now => {
                self.set_state(eval.id, State::Delayed, eval.wait_until);
            }
            None => self.enqueue(now, eval.id),
        }
    }

    /// Notes that an evaluation has changed in the store without a change of state here.
    fn touch(&mut self, id: EvalId, modify_index: u64) {
        let entry = self
            .entries
            .get_mut(&id)
            .expect("only held evaluations are touched");
        let lock = self.job_locks.get_mut(&entry.job);
        lock.wait_index = lock.wait_index.max(modify_index);
        if entry.state == State::Pending {
            lock.pending.remove(&entry.pending_key(id));
        }
        entry.modify_index = entry.modify_index.max(modify_index);
        if entry.state == State::Pending {
            lock.pending.insert(entry.pending_key(id));
        }
    }

    /// Reports the duration of a delivery whose outcome is now seen.
    fn note_outcome(&mut self, now: Timestamp, id: EvalId, effects: &mut Vec<Effect>) {
        let Some(delivery) = self.forget_delivery(id) else {
            return;
        };
        let entry = &self.entries[&id];
        effects.push(Effect::Answered {
            eval_id: id,
            job_type: entry.job_type,
            processing: now.since(delivery.delivered_at),
            response: now.since(entry.queued_at),
        });
    }
}
