//! Canaries of a group, and its other allocations while a version is tried out.

use std::collections::BTreeSet;

use state::AllocView;

use crate::reconcile::changes::{Cause, GroupChanges, NOT_NEEDED, OlderVersion, PlaceAsk, StopAsk};
use crate::reconcile::classify::Sets;
use crate::reconcile::names::NameIndex;
use crate::reconcile::node_condition::{NodeCondition, node_condition};
use crate::reconcile::reconciler::{GroupReconciler, len};
use crate::reconcile::slots::Waits;
use crate::reconcile::spec_change::SpecChange;
use crate::reconcile::stops::Slots;

/// The existing canaries of the current version, while it is tried out.
#[derive(Debug, Default)]
pub(super) struct Canaries<'a> {
    pub(super) slots: Slots<'a>,
    /// Their name indexes.
    pub(super) taken: BTreeSet<u32>,
}

impl<'a> GroupReconciler<'a, '_> {
    /// Stops canaries of versions that will not be rolled out, and returns the other allocations.
    pub(super) fn stop_stale_canaries(
        &self,
        allocs: Vec<&'a AllocView>,
        changes: &mut GroupChanges<'a>,
    ) -> Vec<&'a AllocView> {
        let is_stale = |view: &&AllocView| self.context.rollouts.is_stale_canary(view);
        let (stale, kept): (Vec<_>, _) = allocs.into_iter().partition(is_stale);
        for view in stale {
            if view.alloc.is_server_terminal() {
                changes.desired.ignore += 1;
                continue;
            }
            let is_lost = !view.is_client_terminal()
                && matches!(
                    node_condition(self.context.snapshot, view),
                    NodeCondition::Down | NodeCondition::Gone
                );
            changes.stops.push(if is_lost {
                StopAsk::lost(view)
            } else {
                StopAsk::new(view, NOT_NEEDED)
            });
        }
        kept
    }

    /// Takes the current version's canaries out of `sets`, while it is tried out.
    pub(super) fn canaries(
        &self,
        sets: &mut Sets<'a>,
        waits: &mut Waits<'a>,
        changes: &mut GroupChanges<'a>,
    ) -> Canaries<'a> {
        if !self.is_canarying() {
            return Canaries::default();
        }
        let mut own = sets.split_off(|view| self.context.rollouts.is_canary(view));
        // New canaries replace those that are lost or have to migrate.
        let lost = std::mem::take(&mut own.lost);
        changes.stops.extend(lost.into_iter().map(StopAsk::lost));
        for view in std::mem::take(&mut own.migrate) {
            changes
                .stops
                .push(StopAsk::leaving(self.context.snapshot, view));
        }
        let slots = self.slots(&own, waits);
        let taken = slots.iter().map(|view| view.alloc.name_index).collect();
        Canaries { slots, taken }
    }

    /// Returns the desired number of canaries; 0: none, or no more.
    ///
    /// At most the group's count. (Nomad would wait for canaries that it does not place.)
    pub(super) fn wanted_canaries(
        &self,
        destructive: &[&AllocView],
        slots: &Slots<'a>,
        lost: &[&'a AllocView],
        canaries: &Canaries<'a>,
    ) -> u32 {
        let rollouts = &self.context.rollouts;
        let update = self.update().filter(|_| !self.context.batch);
        let wanted = update.map_or(0, |update| {
            rollouts.canaries_of(update).min(self.group.count)
        });
        let is_over = rollouts.current.is_some() && rollouts.active_id().is_none();
        let is_promoted = rollouts
            .group(&self.group.name)
            .is_some_and(|group| group.promoted);
        // Allocations that are replaced now get the version before.
        let mut replaced = slots.iter().chain(lost.iter().copied());
        let are_some_old = !destructive.is_empty()
            || (self.is_canarying() && replaced.any(|view| !self.is_of_version(view)));
        // The rollout continues with its canaries alone, even without outgoing allocations: these
        // may have been preempted, and the canaries as well.
        let is_alone = self.is_canarying() && slots.len() == 0 && lost.is_empty();
        let is_needed = (are_some_old || is_alone) && canaries.slots.len() < wanted;
        if is_needed && !is_over && !is_promoted {
            wanted
        } else {
            0
        }
    }

    /// Replaces canaries that failed or are disconnected, and places those still missing, under the
    /// name indexes that they may take over first.
    pub(super) fn place_canaries(
        &self,
        wanted: u32,
        canaries: Canaries<'a>,
        replaceable: Vec<u32>,
        names: &NameIndex,
        changes: &mut GroupChanges<'a>,
    ) {
        let Canaries { slots, mut taken } = canaries;
        let again = slots.reschedule.iter().map(|view| Cause::Reschedule(view));
        let unknown = slots
            .unknown
            .iter()
            .map(|view| Cause::Unknown(view, self.unknown_since(view)));
        let again: Vec<_> = again.chain(unknown).collect();
        changes.desired.reschedule_now += len(&again);
        changes.desired.place += len(&again);
        for cause in again {
            let number = cause.previous().map_or(0, |view| view.alloc.name_index);
            changes.places.push(PlaceAsk {
                is_canary: true,
                ..PlaceAsk::new(number, cause)
            });
        }
        let rollouts = &self.context.rollouts;
        if wanted == 0 || rollouts.is_paused() || rollouts.is_failed() {
            return;
        }
        let new = wanted.saturating_sub(slots.len());
        let numbers = names.of_canaries(new, replaceable.into_iter(), &mut taken);
        changes.desired.canary = len(&numbers);
        for number in numbers {
            changes.places.push(PlaceAsk {
                is_canary: true,
                ..PlaceAsk::new(number, Cause::Missing)
            });
        }
    }

    /// Records the outgoing allocations and the canaries.
    pub(super) fn note_generations(
        &self,
        destructive: &[&AllocView],
        slots: &Slots<'a>,
        canaries: &Canaries<'a>,
        waits: &Waits<'a>,
        changes: &mut GroupChanges<'a>,
    ) {
        let rollouts = &self.context.rollouts;
        let mut comparison = self.comparison();
        // Disconnected allocations are not updated now, but they are outgoing.
        let there = slots.iter().chain(waits.covered.iter().copied());
        let old = there.filter(|view| {
            !rollouts.is_canary(view) && comparison.of(view) == SpecChange::Destructive
        });
        let old = old.map(|view| view.alloc.id);
        changes.outgoing = destructive.iter().map(|view| view.alloc.id).collect();
        changes.outgoing.extend(old);
        let there = canaries.slots.iter().chain(waits.covered.iter().copied());
        let tried = there.filter(|view| rollouts.is_canary(view));
        changes.canaries = tried.map(|view| view.alloc.id).collect();
    }

    /// Returns the version of the replacement of `view`; `None`: the job's current one.
    pub(super) fn older(&self, view: &AllocView, is_canarying: bool) -> Option<OlderVersion> {
        let alloc = &view.alloc;
        let is_older = alloc.job_create_index == self.job.create_index
            && alloc.job_version < self.job.value.version;
        // Allocations that can be updated in place need no canaries.
        if !is_canarying || !is_older || self.comparison().of(view) != SpecChange::Destructive {
            return None;
        }
        let context = &self.context;
        let has_group = |older: &OlderVersion| {
            let job = context.snapshot.job_version(context.key, older.version);
            job.is_some_and(|job| job.value.task_group(&self.group.name).is_some())
        };
        let own = OlderVersion {
            version: alloc.job_version,
            deployment_id: None,
        };
        let promoted = context
            .rollouts
            .promoted_version(&self.group.name, alloc.job_version);
        promoted.into_iter().chain([own]).find(has_group)
    }
}
