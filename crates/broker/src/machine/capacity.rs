//! Blocked evaluations: tracking, unblocking by capacity, retries by time.

use std::collections::BTreeSet;
use std::sync::Arc;

use model::{EvalId, JobKey, NodeId, Timestamp};

use super::Broker;
use crate::blocked::Verdict;
use crate::entry::State;
use crate::event::BlockedOn;
use crate::free_capacity::FreeCapacity;

impl Broker {
    pub(super) fn block(
        &mut self,
        now: Timestamp,
        id: EvalId,
        job: &Arc<JobKey>,
        create_index: u64,
        on: BlockedOn,
    ) {
        let (verdict, older) = self.blocked.block(id, job, create_index, on);
        if let Some(older) = older {
            self.supersede(now, older);
        }
        match verdict {
            Verdict::Tracked => self.set_state(id, State::Blocked, Timestamp::NEVER),
            Verdict::Missed => self.enqueue(now, id),
            Verdict::Duplicate => self.supersede(now, id),
        }
        if self.conflict_retry_at.is_none() && self.blocked.has_after_conflicts() {
            self.conflict_retry_at = Some(now.plus(self.config.conflict_retry));
        }
    }

    pub(super) fn learn_capacity(
        &mut self,
        now: Timestamp,
        class: Arc<str>,
        node_id: Option<NodeId>,
        free: FreeCapacity,
        index: u64,
    ) {
        let freed = self.blocked.gain(now, class, node_id, free, index);
        self.enqueue_unblocked(now, freed);
    }

    /// Retries due evaluations that lost too many placement races.
    pub(super) fn retry_after_conflicts(&mut self, now: Timestamp) {
        if self.conflict_retry_at.is_none_or(|at| at > now) {
            return;
        }
        self.conflict_retry_at = None;
        let freed = self.blocked.take_after_conflicts();
        self.enqueue_unblocked(now, freed);
    }

    fn enqueue_unblocked(&mut self, now: Timestamp, freed: BTreeSet<EvalId>) {
        for id in freed {
            self.enqueue(now, id);
        }
    }
}
