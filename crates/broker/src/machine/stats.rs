//! Counts of evaluations by state, and a slow check of the invariants.

use model::{EvalId, JobType};

use super::Broker;
use crate::entry::State;

/// Numbers of evaluations by state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    pub ready: usize,
    /// By position in [`JobType::ALL`].
    pub ready_by_type: [usize; JobType::ALL.len()],
    /// Delivered to workers, including acked ones whose outcome has not been seen.
    pub unacked: usize,
    pub pending: usize,
    /// Delayed, or nacked and waiting for the next delivery.
    pub waiting: usize,
    pub blocked: usize,
    /// The part of `blocked` that capacity of any class may help; Nomad's word, as in its metric.
    pub escaped: usize,
    /// About to be written canceled.
    pub cancelable: usize,
    /// About to be written failed.
    pub failing: usize,
    /// Workers' open sessions.
    pub sessions: usize,
    /// The operator has paused deliveries.
    pub paused: bool,
}

impl Broker {
    pub fn stats(&self) -> Stats {
        let count = |state: State| self.counts[state as usize];
        Stats {
            ready: count(State::Ready),
            ready_by_type: JobType::ALL.map(|job_type| self.ready.len(job_type)),
            unacked: count(State::Unacked) + count(State::Acked),
            pending: count(State::Pending),
            waiting: count(State::Delayed) + count(State::BackingOff),
            blocked: count(State::Blocked),
            escaped: self.blocked.any_class_len(),
            cancelable: count(State::Superseded),
            failing: count(State::Failing),
            sessions: self.sessions.len(),
            paused: self.paused,
        }
    }

    /// Returns the number of evaluations in any state.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns the state of an evaluation; `None`: unknown.
    pub fn state_of(&self, id: EvalId) -> Option<State> {
        self.entries.get(&id).map(|entry| entry.state)
    }

    /// Checks every index against the entries' states; takes time in proportion to all evaluations,
    /// so it is for tests and the simulator.
    ///
    /// # Panics
    /// Panics when an index disagrees with the entries.
    pub fn check(&self) {
        for (id, entry) in &self.entries {
            let delivered = self.deliveries.contains_key(id);
            let with_worker = matches!(entry.state, State::Unacked | State::Acked);
            assert_eq!(delivered, with_worker, "{id} is {:?}", entry.state);
            assert_eq!(
                self.blocked.contains(*id),
                entry.state == State::Blocked,
                "{id}"
            );
        }
        for (position, state) in State::ALL.into_iter().enumerate() {
            let held = self
                .entries
                .values()
                .filter(|entry| entry.state == state)
                .count();
            assert_eq!(self.counts[position], held, "count of {state:?}");
        }
        let ready: usize = JobType::ALL
            .into_iter()
            .map(|job_type| self.ready.len(job_type))
            .sum();
        assert_eq!(ready, self.counts[State::Ready as usize], "ready queues");
        assert_eq!(
            self.blocked.len(),
            self.counts[State::Blocked as usize],
            "blocked tracker"
        );
        let timers = self
            .entries
            .values()
            .filter(|entry| !entry.due.is_never())
            .count();
        assert_eq!(self.timers.len(), timers, "timers");
        self.check_locks();
    }

    fn check_locks(&self) {
        let mut held = 0;
        for (job, lock) in self.job_locks.iter() {
            held += lock.held as usize;
            let owners: Vec<_> = self
                .entries
                .iter()
                .filter(|(_, entry)| entry.job == *job && entry.state.holds_lock())
                .map(|(id, _)| *id)
                .collect();
            assert_eq!(
                owners,
                lock.owner.into_iter().collect::<Vec<_>>(),
                "lock of {job}"
            );
            assert!(
                lock.owner.is_some() || lock.pending.is_empty(),
                "{job} has a free lock and a pending evaluation"
            );
            for key in &lock.pending {
                assert_eq!(self.entries[&key.id].state, State::Pending, "{}", key.id);
            }
        }
        assert_eq!(
            held,
            self.entries.len(),
            "every held evaluation is counted by its job"
        );
    }
}
