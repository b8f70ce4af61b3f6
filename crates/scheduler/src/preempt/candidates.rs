//! Candidates for eviction on a node.

use std::cmp::Reverse;

use model::{AllocatedResources, JobKey, NodeId};
use state::{AllocView, Share, Snapshot};

use crate::preempt::cost::PRIORITY_DELTA;
use crate::preempt::preempted::Preempted;

/// The job that preempts others.
#[derive(Clone, Debug)]
pub(crate) struct Preemptor {
    pub(crate) job: JobKey,
    pub(crate) priority: u8,
}

/// An allocation that could be evicted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Candidate<'a> {
    pub(crate) view: &'a AllocView,
    /// The priority of the job version that it runs.
    pub(crate) priority: u8,
    /// The number of its group that may move at the same time; 0: any number.
    pub(crate) max_parallel: u32,
}

impl<'a> Candidate<'a> {
    pub(crate) fn resources(&self) -> &'a AllocatedResources {
        &self.view.alloc.resources
    }
}

impl Preemptor {
    /// Tells whether allocations of a job with this priority may be evicted.
    pub(crate) fn may_preempt(&self, priority: u8) -> bool {
        priority
            .checked_add(PRIORITY_DELTA)
            .is_some_and(|needed| self.priority >= needed)
    }

    /// Returns the resources of a node by priority that could be freed, lowest priority first.
    pub(crate) fn shares<'a>(
        &self,
        snapshot: &'a Snapshot,
        node: NodeId,
    ) -> impl Iterator<Item = &'a Share> {
        let shares = snapshot.shares(node).iter();
        shares.take_while(|share| self.may_preempt(share.priority))
    }

    /// Returns the candidates on `node`.
    ///
    /// Shape: lowest priority first; of one priority the youngest first, which loses the least work.
    pub(crate) fn candidates<'a>(
        &self,
        snapshot: &'a Snapshot,
        node: NodeId,
        preempted: &Preempted,
    ) -> Vec<Candidate<'a>> {
        let mut candidates = Vec::new();
        for view in snapshot.allocs_by_node(node) {
            let alloc = &view.alloc;
            let key = alloc.job_key();
            if view.is_terminal() || key == self.job || preempted.contains(alloc.id) {
                continue;
            }
            // Versions count from 0 again when a job is purged and registered anew.
            let is_same = snapshot
                .job(&key)
                .is_some_and(|job| job.create_index == alloc.job_create_index);
            let version = snapshot.job_version(&key, alloc.job_version);
            let Some(job) = version.filter(|job| is_same && self.may_preempt(job.value.priority))
            else {
                continue;
            };
            let group = job.value.task_group(&alloc.task_group);
            let migrate = group.and_then(|group| group.migrate.as_ref());
            candidates.push(Candidate {
                view,
                priority: job.value.priority,
                max_parallel: migrate.map_or(0, |migrate| migrate.max_parallel),
            });
        }
        candidates.sort_by_key(|candidate| {
            let view = candidate.view;
            (
                candidate.priority,
                Reverse(view.create_index),
                view.alloc.id,
            )
        });
        candidates
    }
}
