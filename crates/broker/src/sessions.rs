//! The workers' dequeue streams, with their job types and credit.

use std::collections::VecDeque;

use model::{EvalId, JobType};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::config::CREDIT_MAX;
use crate::event::{JobTypes, SessionId};

#[derive(Debug, Default)]
pub(crate) struct Sessions {
    by_id: FxHashMap<SessionId, Session>,
    /// Sessions with credit, the next in turn first. **Invariant**: exactly those with credit.
    turn: VecDeque<SessionId>,
}

#[derive(Debug)]
struct Session {
    types: JobTypes,
    credit: u32,
    /// Delivered and unanswered evaluations.
    outstanding: FxHashSet<EvalId>,
}

impl Sessions {
    pub(crate) fn open(&mut self, id: SessionId, types: JobTypes, credit: u32) {
        let session = Session {
            types,
            credit: 0,
            outstanding: FxHashSet::default(),
        };
        self.by_id.insert(id, session);
        self.grant(id, credit);
    }

    pub(crate) fn grant(&mut self, id: SessionId, credit: u32) {
        let Some(session) = self.by_id.get_mut(&id) else {
            return;
        };
        let had_none = session.credit == 0;
        session.credit = session.credit.saturating_add(credit).min(CREDIT_MAX);
        if had_none && session.credit > 0 {
            self.turn.push_back(id);
        }
    }

    /// Removes a session and returns its unanswered evaluations, ordered by id.
    pub(crate) fn close(&mut self, id: SessionId) -> Vec<EvalId> {
        self.turn.retain(|other| *other != id);
        let Some(session) = self.by_id.remove(&id) else {
            return Vec::new();
        };
        let mut outstanding: Vec<EvalId> = session.outstanding.into_iter().collect();
        outstanding.sort_unstable();
        outstanding
    }

    /// Returns the types that some session with credit takes.
    pub(crate) fn wanted(&self) -> JobTypes {
        let mut wanted = JobTypes::NONE;
        for id in &self.turn {
            wanted = wanted.union(self.by_id[id].types);
            if wanted == JobTypes::all() {
                break;
            }
        }
        wanted
    }

    /// Picks the next session in turn that takes `job_type`, uses one of its credit, and records
    /// `eval_id` as delivered to it.
    pub(crate) fn take_turn(&mut self, job_type: JobType, eval_id: EvalId) -> Option<SessionId> {
        for _ in 0..self.turn.len() {
            let id = self.turn.pop_front()?;
            let session = self.by_id.get_mut(&id).expect("sessions in turn are open");
            if !session.types.contains(job_type) {
                self.turn.push_back(id);
                continue;
            }
            session.credit -= 1;
            session.outstanding.insert(eval_id);
            if session.credit > 0 {
                self.turn.push_back(id);
            }
            return Some(id);
        }
        None
    }

    /// Removes `eval_id` from the unanswered ones of `id`.
    pub(crate) fn answered(&mut self, id: SessionId, eval_id: EvalId) {
        if let Some(session) = self.by_id.get_mut(&id) {
            session.outstanding.remove(&eval_id);
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.by_id.len()
    }
}
