//! Plans that wait to be verified: higher priority first, then the older.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use model::{JobKey, Plan};

use crate::machine::Ticket;

/// How many plans may wait. Every worker has at most one out, so this is more workers than a
/// cluster has; beyond it something submits without waiting for answers.
const PLANS_MAX: usize = 4_096;

/// A plan between its submission and its answer.
#[derive(Clone, Debug)]
pub(crate) struct Queued {
    pub(crate) ticket: Ticket,
    pub(crate) plan: Arc<Plan>,
    /// When it came in, as a count.
    arrival: u64,
    pub(crate) commit_attempts: u32,
    /// It shares no transaction: one that it was in has failed.
    pub(crate) is_alone: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Queue {
    plans: BTreeMap<(Reverse<u8>, u64), Queued>,
    arrivals: u64,
}

impl Queue {
    /// Puts in a new plan; `false` when there are too many.
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
            is_alone: false,
        });
        true
    }

    /// Puts a plan back where it was.
    pub(crate) fn put_back(&mut self, queued: Queued) {
        self.plans
            .insert((Reverse(queued.plan.priority), queued.arrival), queued);
    }

    pub(crate) fn put_all_back(&mut self, plans: &mut Vec<Queued>) {
        for queued in plans.drain(..) {
            self.put_back(queued);
        }
    }

    /// Takes out the first whose job is not `busy`.
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
