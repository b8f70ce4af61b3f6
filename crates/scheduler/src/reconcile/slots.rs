//! Slots of a group: the allocations that occupy one, and those replaced or covered by another.

use std::collections::BTreeSet;

use model::{AllocId, Timestamp};
use state::AllocView;

use crate::reconcile::classify::{Sets, is_marked_unknown};
use crate::reconcile::node_condition::{NodeCondition, node_condition};
use crate::reconcile::reconciler::GroupReconciler;
use crate::reconcile::reschedule::SlotDecision;
use crate::reconcile::stops::Slots;

/// Allocations that keep their slots, with the time of their follow-up.
#[derive(Debug, Default)]
pub(super) struct Waits<'a> {
    pub(super) reschedule: Vec<(&'a AllocView, Timestamp)>,
    /// Marked unknown by this plan.
    pub(super) disconnecting: Vec<&'a AllocView>,
    /// Marked unknown before.
    pub(super) unknown: Vec<&'a AllocView>,
    /// Unknown with a replacement: they have no slot of their own.
    pub(super) covered: Vec<&'a AllocView>,
    pub(super) lost: Vec<(&'a AllocView, Timestamp)>,
}

impl<'a> GroupReconciler<'a, '_> {
    /// Sorts the allocations that are not lost by the decision about their slot.
    pub(super) fn slots(&self, sets: &Sets<'a>, waits: &mut Waits<'a>) -> Slots<'a> {
        let rules = self.rules();
        let mut untainted = sets.untainted.iter();
        let are_some_unknown =
            !sets.disconnecting.is_empty() || untainted.any(|view| is_marked_unknown(view));
        let live: BTreeSet<AllocId> = [&sets.untainted, &sets.migrate, &sets.disconnecting]
            .into_iter()
            .filter(|_| are_some_unknown)
            .flatten()
            .map(|view| view.alloc.id)
            .collect();
        let mut slots = Slots {
            migrate: sets.migrate.clone(),
            ..Slots::default()
        };
        for view in sets.untainted.iter().copied() {
            if is_marked_unknown(view) {
                waits.unknown.push(view);
                let since = view.alloc.unknown_since;
                self.put_unknown(view, since, &live, &mut slots, waits);
                continue;
            }
            match rules.decide(view) {
                SlotDecision::Keep => slots.untainted.push(view),
                SlotDecision::Later(at) => {
                    slots.untainted.push(view);
                    // On a node that is returning, updates cannot be applied; its return evaluates
                    // the job.
                    let is_there =
                        node_condition(self.context.snapshot, view) == NodeCondition::Ready;
                    if is_there || view.is_client_terminal() {
                        waits.reschedule.push((view, at));
                    }
                }
                SlotDecision::Now => slots.reschedule.push(view),
                SlotDecision::Gone => {}
            }
        }
        for view in sets.disconnecting.iter().copied() {
            waits.disconnecting.push(view);
            self.put_unknown(view, self.context.now, &live, &mut slots, waits);
        }
        slots
    }

    /// Finds the slot of an allocation disconnected since `since`.
    pub(super) fn put_unknown(
        &self,
        view: &'a AllocView,
        since: Timestamp,
        live: &BTreeSet<AllocId>,
        slots: &mut Slots<'a>,
        waits: &mut Waits<'a>,
    ) {
        if self.is_covered(view, live) {
            waits.covered.push(view);
            return;
        }
        let may_be_replaced = self.group.disconnect.is_none_or(|block| block.replace)
            && !node_condition(self.context.snapshot, view).is_connected();
        match self.rules().decide_unknown(view, since) {
            SlotDecision::Now if may_be_replaced => slots.unknown.push(view),
            SlotDecision::Later(at) if may_be_replaced => {
                slots.untainted.push(view);
                waits.reschedule.push((view, at));
            }
            _ => slots.untainted.push(view),
        }
    }

    /// Tells whether a successor of `view` is in `live`, and occupies its slot.
    pub(super) fn is_covered(&self, view: &AllocView, live: &BTreeSet<AllocId>) -> bool {
        self.successors(view)
            .iter()
            .any(|successor| live.contains(&successor.alloc.id))
    }

    /// Returns the lost allocations with a slot of their own, without replacements of disconnected
    /// allocations that have the slot again.
    pub(super) fn lost_slots(&self, slots: &Slots<'a>, sets: &Sets<'a>) -> Vec<&'a AllocView> {
        let stand_ins: BTreeSet<AllocId> = slots
            .iter()
            .flat_map(|view| self.successors(view))
            .map(|view| view.alloc.id)
            .collect();
        let lost = sets.lost.iter().copied();
        lost.filter(|view| !stand_ins.contains(&view.alloc.id))
            .collect()
    }
}
