//! The entries of evaluations: changes of their states, the locks of their jobs, and their end.

use std::sync::Arc;

use model::{EvalId, JobKey, Timestamp};

use super::{Broker, Outstanding};
use crate::entry::{Entry, State};

impl Broker {
    /// Moves an evaluation to `state`, whose timer fires at `due` (never: it has none).
    ///
    /// The one place where an evaluation enters and leaves the structures.
    pub(super) fn set_state(&mut self, id: EvalId, state: State, due: Timestamp) {
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
    pub(super) fn enqueue(&mut self, now: Timestamp, id: EvalId) {
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
    pub(super) fn supersede(&mut self, now: Timestamp, id: EvalId) {
        let window = self.config.cancel_window.as_nanos().max(1);
        let window = u64::try_from(window).unwrap_or(u64::MAX);
        let due = Timestamp((now.0 / window).saturating_add(1).saturating_mul(window));
        self.set_state(id, State::Superseded, due);
    }

    /// Removes an evaluation that the store has closed, and releases its job's lock if it had it.
    pub(super) fn drop_eval(&mut self, now: Timestamp, id: EvalId) -> Entry {
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

    pub(super) fn forget_delivery(&mut self, id: EvalId) -> Option<Outstanding> {
        let delivery = self.deliveries.remove(&id)?;
        self.sessions.answered(delivery.session, id);
        Some(delivery)
    }

    pub(super) fn job_of(&self, id: EvalId) -> Arc<JobKey> {
        Arc::clone(&self.entries[&id].job)
    }
}
