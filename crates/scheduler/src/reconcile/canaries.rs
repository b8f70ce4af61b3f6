//! Those that try a version out before the others follow, and the others meanwhile.

use std::collections::BTreeSet;

use state::AllocView;

use crate::reconcile::changes::{
    Cause, GroupChanges, MIGRATING, NOT_NEEDED, Older, PlaceAsk, StopAsk,
};
use crate::reconcile::classify::{Home, Sets, home};
use crate::reconcile::group::{GroupReconciler, len};
use crate::reconcile::names::NameIndex;
use crate::reconcile::slots::Waits;
use crate::reconcile::spec_change::SpecChange;
use crate::reconcile::stops::Slots;

/// The canaries of the current version that are there, while it is being tried out.
#[derive(Debug, Default)]
pub(super) struct Canaries<'a> {
    pub(super) slots: Slots<'a>,
    /// The numbers that they have.
    pub(super) taken: BTreeSet<u32>,
}

impl<'a> GroupReconciler<'a, '_> {
    pub(super) fn is_canarying(&self) -> bool {
        self.context.triage.is_canarying(&self.group.name)
    }

    /// Stops those that tried out a version which will not be rolled out, and returns the others.
    pub(super) fn stop_stale_canaries(
        &self,
        allocs: Vec<&'a AllocView>,
        changes: &mut GroupChanges<'a>,
    ) -> Vec<&'a AllocView> {
        let is_stale = |view: &&AllocView| self.context.triage.is_stale_canary(view);
        let (stale, kept): (Vec<_>, _) = allocs.into_iter().partition(is_stale);
        for view in stale {
            if view.alloc.is_server_terminal() {
                changes.desired.ignore += 1;
                continue;
            }
            let is_lost = !view.is_client_terminal()
                && matches!(home(self.context.snapshot, view), Home::Down | Home::Gone);
            changes.stops.push(if is_lost {
                StopAsk::lost(view)
            } else {
                StopAsk::new(view, NOT_NEEDED)
            });
        }
        kept
    }

    /// Takes the current version's canaries out of `sets`, while it is being tried out.
    pub(super) fn canaries(
        &self,
        sets: &mut Sets<'a>,
        waits: &mut Waits<'a>,
        changes: &mut GroupChanges<'a>,
    ) -> Canaries<'a> {
        if !self.is_canarying() {
            return Canaries::default();
        }
        let mut own = sets.split_off(|view| self.context.triage.is_canary(view));
        // New ones take the place of those that are lost or have to move.
        let lost = std::mem::take(&mut own.lost);
        changes.stops.extend(lost.into_iter().map(StopAsk::lost));
        for view in std::mem::take(&mut own.migrate) {
            changes.stops.push(StopAsk::new(view, MIGRATING));
        }
        let slots = self.slots(&own, waits);
        let taken = slots.iter().map(|view| view.alloc.name_index).collect();
        Canaries { slots, taken }
    }

    /// Returns how many canaries there should be: 0 when none are asked for, or none any more.
    ///
    /// Never more than the group has allocations. (Nomad would wait for canaries that it does not
    /// place.)
    pub(super) fn wanted_canaries(
        &self,
        destructive: &[&AllocView],
        slots: &Slots<'a>,
        lost: &[&'a AllocView],
        canaries: &Canaries<'a>,
    ) -> u32 {
        let triage = &self.context.triage;
        let update = self.update().filter(|_| !self.context.batch);
        let wanted = update.map_or(0, |update| update.canary.min(self.group.count));
        let is_over = triage.current.is_some() && triage.active_id().is_none();
        let is_promoted = triage
            .group(&self.group.name)
            .is_some_and(|group| group.promoted);
        // Those that are replaced now get the version before.
        let mut replaced = slots.iter().chain(lost.iter().copied());
        let are_some_old = !destructive.is_empty()
            || (self.is_canarying() && replaced.any(|view| !self.is_of_version(view)));
        // The rollout goes on with its canaries alone, also when nobody is left that they would
        // take the place of: those may have made way for others, and the canaries as well.
        let is_alone = self.is_canarying() && slots.len() == 0 && lost.is_empty();
        let is_needed = (are_some_old || is_alone) && canaries.slots.len() < wanted;
        if is_needed && !is_over && !is_promoted {
            wanted
        } else {
            0
        }
    }

    /// Places canaries anew that failed or are out of reach, and as many as are still wanted, under
    /// the numbers of those that they may replace first.
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
        let triage = &self.context.triage;
        if wanted == 0 || triage.is_paused() || triage.is_failed() {
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

    /// Notes who goes once the version is promoted, and who goes if it is not.
    pub(super) fn note_generations(
        &self,
        destructive: &[&AllocView],
        slots: &Slots<'a>,
        canaries: &Canaries<'a>,
        waits: &Waits<'a>,
        changes: &mut GroupChanges<'a>,
    ) {
        let triage = &self.context.triage;
        let mut comparison = self.comparison();
        // Those out of reach are not updated now, but they do not stay either.
        let there = slots.iter().chain(waits.covered.iter().copied());
        let old = there.filter(|view| {
            !triage.is_canary(view) && comparison.of(view) == SpecChange::Destructive
        });
        let old = old.map(|view| view.alloc.id);
        changes.old = destructive.iter().map(|view| view.alloc.id).collect();
        changes.old.extend(old);
        let there = canaries.slots.iter().chain(waits.covered.iter().copied());
        let tried = there.filter(|view| triage.is_canary(view));
        changes.tried = tried.map(|view| view.alloc.id).collect();
    }

    /// Returns the version that the replacement of `view` gets, if not the job's current one.
    pub(super) fn older(&self, view: &AllocView, is_canarying: bool) -> Option<Older> {
        let alloc = &view.alloc;
        let is_older = alloc.job_create_index == self.job.create_index
            && alloc.job_version < self.job.value.version;
        // What could take the new version as it runs does not have to be tried out.
        if !is_canarying || !is_older || self.comparison().of(view) != SpecChange::Destructive {
            return None;
        }
        let context = &self.context;
        let has_group = |older: &Older| {
            let job = context.snapshot.job_version(context.key, older.version);
            job.is_some_and(|job| job.value.task_group(&self.group.name).is_some())
        };
        let own = Older {
            version: alloc.job_version,
            deployment_id: None,
        };
        let settled = context
            .triage
            .settled_version(&self.group.name, alloc.job_version);
        settled.into_iter().chain([own]).find(has_group)
    }
}
