//! Who has a slot of the group, who has lost it, and who shares another's.

use std::collections::BTreeSet;

use model::{AllocId, Timestamp};
use state::AllocView;

use crate::reconcile::canaries::Canaries;
use crate::reconcile::changes::{GroupChanges, NOT_NEEDED, StopAsk};
use crate::reconcile::classify::{Home, Sets, home, is_marked_unknown};
use crate::reconcile::group::GroupReconciler;
use crate::reconcile::reschedule::{Fate, Rules};
use crate::reconcile::stops::Slots;

/// Allocations that keep their slots, and when they are due to be looked at again.
#[derive(Debug, Default)]
pub(super) struct Waits<'a> {
    pub(super) reschedule: Vec<(&'a AllocView, Timestamp)>,
    /// Marked unknown by this plan.
    pub(super) disconnecting: Vec<&'a AllocView>,
    /// Marked unknown before.
    pub(super) unknown: Vec<&'a AllocView>,
    /// Unknown, and replaced: they hold no slot of their own.
    pub(super) covered: Vec<&'a AllocView>,
    pub(super) lost: Vec<(&'a AllocView, Timestamp)>,
}

impl<'a> GroupReconciler<'a, '_> {
    pub(super) fn rules(&self) -> Rules<'a> {
        Rules {
            snapshot: self.context.snapshot,
            batch: self.context.batch,
            policy: self.group.reschedule.as_ref(),
            active_deployment: self
                .context
                .triage
                .active_id()
                .filter(|_| self.context.triage.group(&self.group.name).is_some()),
            eval_id: self.context.eval.id,
            triggered_by: self.context.eval.triggered_by,
            now: self.context.now,
        }
    }

    /// Splits those that are not lost by what becomes of their slot.
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
            match rules.fate(view) {
                Fate::Keep => slots.untainted.push(view),
                Fate::Later(at) => {
                    slots.untainted.push(view);
                    // Who runs on a node that is coming back can only be noted when it is there;
                    // then somebody looks.
                    let is_there = home(self.context.snapshot, view) == Home::Well;
                    if is_there || view.is_client_terminal() {
                        waits.reschedule.push((view, at));
                    }
                }
                Fate::Now => slots.reschedule.push(view),
                Fate::Gone => {}
            }
        }
        for view in sets.disconnecting.iter().copied() {
            waits.disconnecting.push(view);
            self.put_unknown(view, self.context.now, &live, &mut slots, waits);
        }
        slots
    }

    /// Finds the slot of one that nobody has heard of since `since`.
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
            && !home(self.context.snapshot, view).is_well();
        match self.rules().fate_of_unknown(view, since) {
            Fate::Now if may_be_replaced => slots.unknown.push(view),
            Fate::Later(at) if may_be_replaced => {
                slots.untainted.push(view);
                waits.reschedule.push((view, at));
            }
            _ => slots.untainted.push(view),
        }
    }

    /// Tells whether one that came after `view` is among `live`, and has its slot.
    pub(super) fn is_covered(&self, view: &AllocView, live: &BTreeSet<AllocId>) -> bool {
        self.successors(view)
            .iter()
            .any(|successor| live.contains(&successor.alloc.id))
    }

    /// Returns the lost ones that had a slot of their own: not those that stood in for one that is
    /// out of reach, and has the slot again.
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

    /// Stops whoever is beyond the count.
    pub(super) fn stop_excess(
        &self,
        slots: &mut Slots<'a>,
        canaries: &Canaries<'a>,
        waits: &mut Waits<'a>,
        changes: &mut GroupChanges<'a>,
    ) {
        let was_canary =
            |view: &&AllocView| !view.is_terminal() && self.context.triage.was_canary(view);
        let successors: Vec<_> = slots.iter().filter(was_canary).collect();
        changes
            .stops
            .extend(slots.stop_beyond(self.group.count, &successors));
        // One out of reach goes with who took its place.
        if waits.covered.is_empty() {
            return;
        }
        let stay: BTreeSet<AllocId> = slots
            .iter()
            .chain(canaries.slots.iter())
            .map(|view| view.alloc.id)
            .collect();
        let covered = std::mem::take(&mut waits.covered);
        for view in covered {
            if self.is_covered(view, &stay) {
                waits.covered.push(view);
            } else {
                changes.stops.push(StopAsk::new(view, NOT_NEEDED));
            }
        }
    }

    pub(super) fn unknown_since(&self, view: &AllocView) -> Timestamp {
        if is_marked_unknown(view) {
            view.alloc.unknown_since
        } else {
            self.context.now
        }
    }
}
