//! Reconciler of one task group: its inputs, and helpers of several steps.

use model::job::{TaskGroup, UpdateStrategy};
use model::{Indexed, Job, Timestamp};
use state::AllocView;

use crate::in_place::InPlace;
use crate::reconcile::classify::is_marked_unknown;
use crate::reconcile::context::Context;
use crate::reconcile::reconnect::successors;
use crate::reconcile::reschedule::Rules;
use crate::reconcile::spec_change::Comparison;

/// Reconciles one group of a job that is not stopped, step by step.
pub(crate) struct GroupReconciler<'a, 'b> {
    pub(crate) context: &'b mut Context<'a>,
    pub(crate) job: &'a Indexed<Job>,
    pub(crate) group: &'a TaskGroup,
    pub(crate) in_place: &'b mut InPlace<'a>,
}

impl<'a> GroupReconciler<'a, '_> {
    pub(super) fn is_of_version(&self, view: &AllocView) -> bool {
        view.alloc.job_version == self.job.value.version
            && view.alloc.job_create_index == self.job.create_index
    }

    /// Returns the update strategy; `None`: all at once.
    pub(super) fn update(&self) -> Option<&'a UpdateStrategy> {
        let update = self.group.update.as_ref();
        update.filter(|update| update.max_parallel > 0)
    }

    pub(super) fn comparison(&self) -> Comparison<'a> {
        let context = &self.context;
        Comparison::new(context.snapshot, context.key, self.job, self.group)
    }

    pub(super) fn rules(&self) -> Rules<'a> {
        Rules {
            snapshot: self.context.snapshot,
            batch: self.context.batch,
            policy: self.group.reschedule.as_ref(),
            active_deployment: self
                .context
                .rollouts
                .active_id()
                .filter(|_| self.context.rollouts.group(&self.group.name).is_some()),
            eval_id: self.context.eval.id,
            triggered_by: self.context.eval.triggered_by,
            now: self.context.now,
        }
    }

    pub(super) fn is_canarying(&self) -> bool {
        self.context.rollouts.is_canarying(&self.group.name)
    }

    pub(crate) fn successors(&self, view: &AllocView) -> Vec<&'a AllocView> {
        successors(self.context.snapshot, view)
    }

    pub(super) fn unknown_since(&self, view: &AllocView) -> Timestamp {
        if is_marked_unknown(view) {
            view.alloc.unknown_since
        } else {
            self.context.now
        }
    }
}

pub(crate) fn len<T>(items: &[T]) -> u32 {
    u32::try_from(items.len()).unwrap_or(u32::MAX)
}
