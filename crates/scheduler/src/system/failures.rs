//! Failed allocations of system and sysbatch jobs with a reschedule policy. Each is replaced on its
//! own node, so no node is penalised.

use std::collections::{BTreeMap, BTreeSet};

use model::job::TaskGroup;
use model::{ClientStatus, NodeId, Timestamp};
use state::AllocView;

use crate::reconcile::changes::GroupChanges;
use crate::reconcile::classify::has_lost_address;
use crate::reconcile::delayed::{Wait, delayed_evals};
use crate::reconcile::reschedule::{Rules, SlotDecision};
use crate::reconcile::spec_change::{Comparison, SpecChange};
use crate::system::reconciler::{Sorted, SystemReconciler, count};

/// The failed allocations of a group that are not replaced now.
#[derive(Debug, Default)]
pub(super) struct Failures<'a> {
    /// Those that need a follow-up evaluation then.
    pub(super) due: Vec<(&'a AllocView, Timestamp)>,
    /// Node → time of the next attempt, if there is one.
    pub(super) failed: BTreeMap<NodeId, Option<Timestamp>>,
    /// The number of them in the current deployment.
    pub(super) rolled_out: u32,
}

impl<'a> SystemReconciler<'a, '_> {
    pub(super) fn rules(&self, group: &'a TaskGroup) -> Rules<'a> {
        let context = &self.context;
        let active = context.rollouts.active_id();
        Rules {
            snapshot: context.snapshot,
            batch: context.batch,
            policy: group.reschedule.as_ref(),
            active_deployment: active.filter(|_| context.rollouts.group(&group.name).is_some()),
            eval_id: context.eval.id,
            triggered_by: context.eval.triggered_by,
            now: context.now,
        }
    }

    /// Tells whether the group's policy decides about `view`, which has ended: it has failed, and a
    /// new version would not start other tasks.
    pub(super) fn follows_policy(&self, group: &'a TaskGroup, view: &AllocView) -> bool {
        if group.reschedule.is_none()
            || view.client_status() != ClientStatus::Failed
            || view.alloc.is_server_terminal()
        {
            return false;
        }
        let context = &self.context;
        let mut comparison = Comparison::new(context.snapshot, context.key, self.job, group);
        comparison.of(view) != SpecChange::Destructive
    }

    /// Tells whether `view` has failed, and its node no longer has the address of one of its ports: it
    /// is replaced at once, and this is no attempt of its policy.
    pub(super) fn has_failed_without_address(&self, view: &AllocView) -> bool {
        view.client_status() == ClientStatus::Failed
            && !view.alloc.is_server_terminal()
            && has_lost_address(&self.context, view)
    }

    /// Records a failed allocation that is not replaced now.
    pub(super) fn wait(
        &self,
        rules: &Rules<'a>,
        view: &'a AllocView,
        decision: SlotDecision,
        failures: &mut Failures<'a>,
    ) {
        if let SlotDecision::Later(at) = decision {
            failures.due.push((view, at));
        }
        let again = rules.next_attempt(view);
        failures.failed.insert(view.alloc.node_id, again);
        // A rollout is not complete because attempts have run out.
        let active = self.context.rollouts.active_id();
        failures.rolled_out += u32::from(active.is_some() && view.alloc.deployment_id == active);
    }

    /// Makes the follow-up evaluations of failed allocations.
    pub(super) fn follow_up(
        &mut self,
        due: Vec<(&'a AllocView, Timestamp)>,
        changes: &mut GroupChanges<'a>,
    ) {
        changes.desired.reschedule_later = count(&due);
        let context = &mut self.context;
        let wait = Wait::Reschedule;
        let (evals, waiting) =
            delayed_evals(context.eval, wait, due, context.now, &mut context.rng);
        context.delayed_evals.extend(evals);
        for (view, eval_id) in waiting {
            changes.edit(view).followup = Some(eval_id);
        }
    }

    /// Records failed allocations on nodes where nothing is placed, for explanations.
    pub(super) fn note_elsewhere(
        &self,
        group: &'a TaskGroup,
        can_run: &BTreeSet<NodeId>,
        newest: &BTreeMap<(NodeId, u32), &'a AllocView>,
        sorted: &Sorted<'a>,
        failures: &mut Failures<'a>,
    ) {
        let rules = self.rules(group);
        for (name, view) in newest {
            let (node_id, number) = *name;
            let is_elsewhere = number < group.count && !can_run.contains(&node_id);
            let is_missed = is_elsewhere && !sorted.taken.contains(name);
            if is_missed
                && self.follows_policy(group, view)
                && !matches!(rules.decide(view), SlotDecision::Now)
            {
                failures.failed.insert(node_id, rules.next_attempt(view));
            }
        }
    }
}
