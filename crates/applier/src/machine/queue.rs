//! The queue of plans before verification: by priority, then by age.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use model::{JobKey, Plan};

use crate::machine::message::Ticket;

/// Limit of queued plans: a scheduler-worker submits at most 64 for each core, so this is some thirty
/// machines. Beyond it, workers submit again after a pause.
const PLANS_MAX: usize = 4_096;

/// A plan between its submission and its answer.
#[derive(Clone, Debug)]
pub(crate) struct Queued {
    pub(crate) ticket: Ticket,
    pub(crate) plan: Arc<Plan>,
    /// Sequence number of its arrival.
    arrival: u64,
    pub(crate) commit_attempts: u32,
    /// It must not share a transaction with other plans, because a shared one has failed.
    pub(crate) must_commit_alone: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Queue {
    plans: BTreeMap<(Reverse<u8>, u64), Queued>,
    arrivals: u64,
}

impl Queue {
    /// Queues a new plan; `false` when the queue is full.
    pub(crate) fn submit(&mut self, ticket: Ticket, plan: Box<Plan>) -> bool {
        if self.plans.len() >= PLANS_MAX {
            return false;
        }
        let arrival = self.arrivals;
        self.arrivals += 1;
        let plan = Arc::from(plan);
        self.put_back(Queued {
            ticket,
            plan,
            arrival,
            commit_attempts: 0,
            must_commit_alone: false,
        });
        true
    }

    /// Puts a plan back at its former position.
    pub(crate) fn put_back(&mut self, queued: Queued) {
        self.plans
            .insert((Reverse(queued.plan.priority), queued.arrival), queued);
    }

    pub(crate) fn put_all_back(&mut self, plans: &mut Vec<Queued>) {
        for queued in plans.drain(..) {
            self.put_back(queued);
        }
    }

    /// Takes the first plan whose job is not `busy`.
    pub(crate) fn pop(&mut self, busy: &BTreeSet<&JobKey>) -> Option<Queued> {
        let (key, _) = self
            .plans
            .iter()
            .find(|(_, queued)| !busy.contains(&queued.plan.job))?;
        let key = *key;
        self.plans.remove(&key)
    }

    pub(crate) fn drain(&mut self) -> impl Iterator<Item = Queued> {
        std::mem::take(&mut self.plans).into_values()
    }

    pub(crate) fn len(&self) -> usize {
        self.plans.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.plans.is_empty()
    }
}
