//! Failed allocations of jobs that want to be everywhere, where a policy says when they are placed
//! again. Each comes back on its own node, so nothing avoids the node that it has failed on.

use std::collections::{BTreeMap, BTreeSet};

use model::job::TaskGroup;
use model::{ClientStatus, NodeId, Timestamp};
use state::AllocView;

use crate::reconcile::changes::GroupChanges;
use crate::reconcile::delayed::{Wait, delayed_evals};
use crate::reconcile::reschedule::{Fate, Rules};
use crate::reconcile::spec_change::{Comparison, SpecChange};
use crate::system::{Sorted, SystemReconciler, count};

/// Those of a group that have failed, and that its policy does not place again now.
#[derive(Debug, Default)]
pub(super) struct Failures<'a> {
    /// They need an evaluation that looks again then.
    pub(super) due: Vec<(&'a AllocView, Timestamp)>,
    /// By node: when one is placed again, if ever.
    pub(super) failed: BTreeMap<NodeId, Option<Timestamp>>,
    /// Of these, the ones of the current deployment.
    pub(super) rolled_out: u32,
}

impl<'a> SystemReconciler<'a, '_> {
    pub(super) fn rules(&self, group: &'a TaskGroup) -> Rules<'a> {
        let context = &self.context;
        let active = context.triage.active_id();
        Rules {
            snapshot: context.snapshot,
            batch: context.batch,
            policy: group.reschedule.as_ref(),
            active_deployment: active.filter(|_| context.triage.group(&group.name).is_some()),
            eval_id: context.eval.id,
            triggered_by: context.eval.triggered_by,
            now: context.now,
        }
    }

    /// Tells whether it is for the group's policy to say when `view`, which has ended, is placed
    /// again: it has failed, and a version that would start it otherwise is not there yet.
    pub(super) fn goes_by_policy(&self, group: &'a TaskGroup, view: &AllocView) -> bool {
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

    /// Notes one that has failed and is not placed again now.
    pub(super) fn wait(
        &self,
        rules: &Rules<'a>,
        view: &'a AllocView,
        fate: Fate,
        failures: &mut Failures<'a>,
    ) {
        if let Fate::Later(at) = fate {
            failures.due.push((view, at));
        }
        let again = rules.next_attempt(view);
        failures.failed.insert(view.alloc.node_id, again);
        // A rollout is not through because somebody has stopped trying.
        let active = self.context.triage.active_id();
        failures.rolled_out += u32::from(active.is_some() && view.alloc.deployment_id == active);
    }

    /// Makes the evaluations that look again when failed ones are due.
    pub(super) fn follow_up(
        &mut self,
        due: Vec<(&'a AllocView, Timestamp)>,
        changes: &mut GroupChanges<'a>,
    ) {
        changes.desired.reschedule_later = count(&due);
        let context = &mut self.context;
        let wait = Wait::Reschedule;
        let (evals, waiting) =
            delayed_evals(context.eval, wait, due, context.now, &mut context.draw);
        context.delayed_evals.extend(evals);
        for (view, eval_id) in waiting {
            changes.edit(view).followup = Some(eval_id);
        }
    }

    /// Notes those that have failed where nothing is placed anyway: who asks why is told of them, too.
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
                && self.goes_by_policy(group, view)
                && !matches!(rules.fate(view), Fate::Now)
            {
                failures.failed.insert(node_id, rules.next_attempt(view));
            }
        }
    }
}
