//! Reconciliation of one task group, step by step.

use std::collections::BTreeSet;

use model::{AllocId, ClientStatus};
use placement::reschedule::has_place;
use state::AllocView;

use crate::reconcile::canaries::Canaries;
use crate::reconcile::changes::{Cause, GroupChanges, NOT_NEEDED, PlaceAsk, StopAsk};
use crate::reconcile::classify::{classify, is_marked_unknown};
use crate::reconcile::context::Context;
use crate::reconcile::names::NameIndex;
use crate::reconcile::node_condition::{NodeCondition, node_condition};
use crate::reconcile::reconciler::{GroupReconciler, len};
use crate::reconcile::rollout;
use crate::reconcile::slots::Waits;
use crate::reconcile::spec_change::SpecChange;
use crate::reconcile::stops::Slots;
use crate::reconcile::waiting::{LostWait, lost_waits};

/// Returns the changes that stop all allocations of the group `name`.
pub(crate) fn stop_all<'a>(
    context: &Context<'a>,
    name: String,
    allocs: Vec<&'a AllocView>,
) -> GroupChanges<'a> {
    let (ended, live): (Vec<_>, Vec<_>) = allocs.into_iter().partition(|view| view.is_terminal());
    let sets = classify(context, None, live);
    let mut changes = GroupChanges {
        name,
        is_complete: true,
        ..GroupChanges::default()
    };
    let stay = [sets.untainted, sets.migrate, sets.reconnecting];
    for view in stay.into_iter().flatten() {
        changes.stops.push(StopAsk::new(view, NOT_NEEDED));
    }
    changes
        .stops
        .extend(sets.lost.into_iter().map(StopAsk::lost));
    // Failed allocations of a service occupy their slots until they are replaced: a restart of the
    // job must place them again.
    let held = ended
        .into_iter()
        .filter(|view| !context.batch && has_place(&view.alloc));
    changes
        .stops
        .extend(held.map(|view| StopAsk::new(view, NOT_NEEDED)));
    changes.desired.stop = len(&changes.stops);
    changes
}

impl<'a> GroupReconciler<'a, '_> {
    pub(crate) fn run(mut self, allocs: Vec<&'a AllocView>) -> GroupChanges<'a> {
        let mut changes = GroupChanges {
            name: self.group.name.clone(),
            group: Some(self.group),
            ..GroupChanges::default()
        };
        let waiting = lost_waits(self.context, self.group, &allocs);
        let allocs = self.drop_history(allocs, &mut changes);
        let rollouts = &self.context.rollouts;
        let is_first_of_version = rollouts.is_first(self.job, allocs.iter().copied());
        let healthy = match &self.context.rollouts.current {
            Some(current) => rollout::healthy_count(current.value.id, allocs.iter().copied()),
            None => 0,
        };
        let allocs = self.stop_stale_canaries(allocs, &mut changes);
        let mut sets = classify(self.context, Some(self.group), allocs);
        changes.desired.ignore += len(&sets.ignored);
        self.reconnect(&mut sets, &mut changes);

        let mut waits = Waits::default();
        let canaries = self.canaries(&mut sets, &mut waits, &mut changes);
        let mut slots = self.slots(&sets, &mut waits);
        let lost = self.lost_slots(&slots, &sets);
        let mut names = self.names(&slots, &lost, &waiting);
        changes
            .stops
            .extend(sets.lost.iter().copied().map(StopAsk::lost));
        self.stop_excess(&mut slots, &canaries, &mut waits, &mut changes);
        changes.desired.stop = len(&changes.stops);

        let destructive = self.sort_updates(&slots, &canaries, &waits, &mut changes);
        let wanted = self.wanted_canaries(&destructive, &slots, &lost, &canaries);
        let is_canarying = wanted > 0 || self.is_canarying();
        if is_canarying {
            self.note_generations(&destructive, &slots, &canaries, &waits, &mut changes);
        }
        let places = self.places(
            &slots,
            &lost,
            &waiting,
            is_canarying,
            &mut names,
            &mut waits,
        );
        let is_up_to_date = destructive.is_empty();
        let limit = self.limit(is_up_to_date, is_canarying, &slots, &changes);
        self.plan_deployment(
            &destructive,
            &places,
            &slots.migrate,
            is_first_of_version,
            wanted,
            &mut changes,
        );
        // While a version is tried out, missing allocations are not placed: canaries may use their
        // name indexes.
        let missing = places
            .iter()
            .filter(|ask| is_canarying && matches!(ask.cause, Cause::Missing));
        let unplaced: Vec<_> = missing.map(|ask| ask.name_index).collect();
        let wanted_places = places.len();
        let limit = self.apply_places(places, &slots, is_canarying, limit, &mut changes);
        let are_some_unplaced = changes.places.len() < wanted_places;
        let replaceable = destructive.iter().map(|view| view.alloc.name_index);
        let mut replaceable: Vec<_> = replaceable.collect();
        replaceable.sort_unstable();
        replaceable.extend(unplaced);
        self.place_canaries(wanted, canaries, replaceable, &names, &mut changes);
        let updated = self.apply_destructive(destructive, limit, &mut names, &mut changes);
        self.migrate(&slots.migrate, is_canarying, &mut names, &mut changes);
        let has_no_moves = is_up_to_date
            && slots.migrate.is_empty()
            && slots.reschedule.is_empty()
            && !are_some_unplaced;
        self.follow_up(waits, &updated, &mut changes);
        changes.is_complete = self.is_complete(&changes, &slots, has_no_moves, healthy);
        changes
    }

    /// Drops allocations that were stopped before, and ended batch allocations that a new version
    /// has to run again.
    ///
    /// Completed work counts as done under a version that would start equal tasks. (Nomad runs it
    /// again after any change of the job, even of its count.)
    fn drop_history(
        &self,
        allocs: Vec<&'a AllocView>,
        changes: &mut GroupChanges<'a>,
    ) -> Vec<&'a AllocView> {
        let mut comparison = self.comparison();
        let mut kept = Vec::with_capacity(allocs.len());
        for view in allocs {
            if !self.context.batch {
                if !view.alloc.is_server_terminal() {
                    kept.push(view);
                }
            } else if view.alloc.is_server_terminal() && view.alloc.transition.reschedule {
                // Its replacement has been decided already.
            } else if view.is_terminal() && !self.is_of_version(view) {
                let is_done = view.client_status() == ClientStatus::Complete
                    && !view.alloc.is_server_terminal()
                    && comparison.of(view) != SpecChange::Destructive;
                if is_done {
                    kept.push(view);
                } else {
                    changes.desired.ignore += 1;
                }
            } else {
                kept.push(view);
            }
        }
        kept
    }

    fn names(
        &self,
        slots: &Slots<'a>,
        lost: &[&'a AllocView],
        waiting: &[LostWait<'a>],
    ) -> NameIndex {
        let lost = lost.iter().copied();
        let waiting = waiting.iter().map(|wait| wait.view);
        let used = slots.iter().chain(lost).chain(waiting);
        NameIndex::new(self.group.count, used.map(|view| view.alloc.name_index))
    }

    /// Sorts the allocations that stay into in-place and destructive updates; returns the latter in
    /// the order of their replacement.
    fn sort_updates(
        &mut self,
        slots: &Slots<'a>,
        canaries: &Canaries<'a>,
        waits: &Waits<'a>,
        changes: &mut GroupChanges<'a>,
    ) -> Vec<&'a AllocView> {
        let snapshot = self.context.snapshot;
        let mut comparison = self.comparison();
        let mut destructive = Vec::new();
        let disconnecting: BTreeSet<_> = waits
            .disconnecting
            .iter()
            .map(|view| view.alloc.id)
            .collect();
        changes.desired.ignore += len(&waits.covered);
        let stay = slots.untainted.iter().chain(&canaries.slots.untainted);
        for view in stay.copied() {
            if disconnecting.contains(&view.alloc.id) {
                continue;
            }
            let is_absent = is_marked_unknown(view)
                || (!view.is_terminal() && node_condition(snapshot, view) != NodeCondition::Ready);
            let change = match comparison.of(view) {
                // Its node cannot apply updates.
                _ if is_absent => SpecChange::None,
                SpecChange::InPlace if view.is_terminal() => SpecChange::None,
                SpecChange::InPlace if !self.in_place.can_stay(self.group, view) => {
                    SpecChange::Destructive
                }
                change => change,
            };
            match change {
                SpecChange::None => changes.desired.ignore += 1,
                SpecChange::InPlace => {
                    changes.edit(view).in_place = true;
                    changes.desired.in_place_update += 1;
                }
                SpecChange::Destructive => destructive.push(view),
            }
        }
        // Unhealthy allocations first: a newer version may have superseded them, and replacing them
        // does not reduce availability further.
        destructive.sort_by_key(|view| {
            let alloc = &view.alloc;
            let is_proven = rollout::is_proven(view);
            (is_proven, alloc.name_index, view.create_index, alloc.id)
        });
        destructive
    }

    /// Returns the placements apart from updates, canaries and migrations: first replacements of
    /// failed, disconnected and lost allocations, then missing ones.
    fn places(
        &self,
        slots: &Slots<'a>,
        lost: &[&'a AllocView],
        waiting: &[LostWait<'a>],
        is_canarying: bool,
        names: &mut NameIndex,
        waits: &mut Waits<'a>,
    ) -> Vec<PlaceAsk<'a>> {
        let mut places = Vec::new();
        let mut replace = |view: &'a AllocView, cause: Cause<'a>, names: &mut NameIndex| {
            places.push(PlaceAsk {
                older: self.older(view, is_canarying),
                ..PlaceAsk::new(names.inherit(view.alloc.name_index), cause)
            });
        };
        for view in slots.reschedule.iter().copied() {
            replace(view, Cause::Reschedule(view), names);
        }
        for view in slots.unknown.iter().copied() {
            replace(view, Cause::Unknown(view, self.unknown_since(view)), names);
        }
        let mut missing = self.group.count.saturating_sub(slots.len());
        let was_lost = waiting.iter().map(|wait| (wait.view, wait.due));
        let is_lost = lost.iter().map(|view| (*view, self.lost_until()));
        for (view, due) in was_lost.chain(is_lost) {
            if missing == 0 {
                break;
            }
            missing -= 1;
            match due {
                // Its node may still run it.
                Some(due) if due > self.context.now => waits.lost.push((view, due)),
                _ => replace(view, Cause::Lost(view), names),
            }
        }
        for _ in 0..missing {
            places.push(PlaceAsk::new(names.lowest_free(), Cause::Missing));
        }
        places
    }

    /// Returns the number of destructive updates allowed now, before placements.
    fn limit(
        &self,
        is_up_to_date: bool,
        is_canarying: bool,
        slots: &Slots<'a>,
        changes: &GroupChanges<'a>,
    ) -> u32 {
        if is_up_to_date && slots.migrate.is_empty() {
            self.group.count
        } else if is_canarying {
            0
        } else {
            let update = self.group.update.as_ref();
            let counted = slots.untainted.iter().chain(&slots.migrate);
            let edits = changes.edits.values();
            let taken_over = edits.filter(|edit| edit.in_place).map(|edit| edit.view);
            let rollouts = &self.context.rollouts;
            rollouts.limit(update, self.group.count, counted.copied(), taken_over)
        }
    }

    /// Decides whether the group joins or starts the deployment, or changes its part of it.
    fn plan_deployment(
        &self,
        destructive: &[&AllocView],
        places: &[PlaceAsk<'a>],
        migrating: &[&AllocView],
        is_first_of_version: bool,
        wanted_canaries: u32,
        changes: &mut GroupChanges<'a>,
    ) {
        let rollouts = &self.context.rollouts;
        let Some(update) = self.update().filter(|_| !self.context.batch) else {
            return;
        };
        let is_closed = rollouts.current.is_some() && rollouts.active_id().is_none();
        if is_closed {
            return;
        }
        if let Some(group) = rollouts.group(&self.group.name) {
            if wanted_canaries > 0 && group.desired_canaries != wanted_canaries {
                let mut group = group.clone();
                group.desired_canaries = wanted_canaries;
                changes.deployment_group = Some(group);
            }
            return;
        }
        let updates = len(destructive) + changes.desired.in_place_update;
        let mut desired_total = updates + len(places);
        if desired_total == 0 {
            // All of them leave their nodes, and the new version takes their places.
            desired_total = len(migrating);
        }
        if desired_total > 0 && (updates > 0 || is_first_of_version) {
            let mut group = rollout::new_group(update, desired_total);
            group.desired_canaries = wanted_canaries;
            changes.deployment_group = Some(group);
        }
    }

    /// Adds the placements allowed now; returns the rest of the update limit.
    fn apply_places(
        &self,
        places: Vec<PlaceAsk<'a>>,
        slots: &Slots<'a>,
        is_canarying: bool,
        limit: u32,
        changes: &mut GroupChanges<'a>,
    ) -> u32 {
        let rollouts = &self.context.rollouts;
        let is_ready = !rollouts.is_paused() && !rollouts.is_failed() && !is_canarying;
        let wanted = len(&places);
        let allowed = places.into_iter().filter(|ask| match ask.cause {
            Cause::Missing => is_ready,
            // Failures in a deployment are up to the deployment watcher.
            Cause::Reschedule(view) => {
                is_ready || !rollouts.is_failed() || !self.is_of_current_deployment(view)
            }
            Cause::Unknown(..) | Cause::Lost(_) | Cause::Update(_) | Cause::Migrate(_) => true,
        });
        changes.places.extend(allowed);
        changes.desired.place = len(&changes.places);
        changes.desired.reschedule_now = len(&slots.reschedule) + len(&slots.unknown);
        if is_ready {
            limit.saturating_sub(wanted)
        } else {
            0
        }
    }

    fn is_of_current_deployment(&self, view: &AllocView) -> bool {
        let current = self.context.rollouts.current.as_ref();
        current.is_some_and(|current| view.alloc.deployment_id == Some(current.value.id))
    }

    /// Adds the destructive updates within the limit, first in order: each frees resources. Returns
    /// their allocations.
    fn apply_destructive(
        &self,
        destructive: Vec<&'a AllocView>,
        limit: u32,
        names: &mut NameIndex,
        changes: &mut GroupChanges<'a>,
    ) -> Vec<&'a AllocView> {
        let allowed = usize::try_from(limit)
            .unwrap_or(usize::MAX)
            .min(destructive.len());
        changes.desired.ignore += len(&destructive[allowed..]);
        let mut updated = destructive;
        updated.truncate(allowed);
        changes.desired.destructive_update = len(&updated);
        let asks = updated
            .iter()
            .map(|view| PlaceAsk::new(names.inherit(view.alloc.name_index), Cause::Update(view)));
        changes.places.splice(0..0, asks);
        updated
    }

    /// Migrates allocations regardless of the rollout: the drain limits the pace.
    fn migrate(
        &self,
        migrating: &[&'a AllocView],
        is_canarying: bool,
        names: &mut NameIndex,
        changes: &mut GroupChanges<'a>,
    ) {
        for view in migrating.iter().copied() {
            changes
                .stops
                .push(StopAsk::leaving(self.context.snapshot, view));
            changes.desired.migrate += 1;
            // Batch allocations stopped at a drain deadline are not run again.
            if self.context.batch && view.alloc.transition.migrate_disable_placement {
                continue;
            }
            changes.places.push(PlaceAsk {
                older: self.older(view, is_canarying),
                ..PlaceAsk::new(names.inherit(view.alloc.name_index), Cause::Migrate(view))
            });
        }
    }

    /// Stops the allocations beyond the count.
    fn stop_excess(
        &self,
        slots: &mut Slots<'a>,
        canaries: &Canaries<'a>,
        waits: &mut Waits<'a>,
        changes: &mut GroupChanges<'a>,
    ) {
        let was_canary =
            |view: &&AllocView| !view.is_terminal() && self.context.rollouts.was_canary(view);
        let successors: Vec<_> = slots.iter().filter(was_canary).collect();
        changes
            .stops
            .extend(slots.stop_beyond(self.group.count, &successors));
        // A disconnected allocation is stopped together with its replacement.
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

    /// Tells whether the group's part of the deployment is complete; allocations outside it do not
    /// count.
    fn is_complete(
        &self,
        changes: &GroupChanges<'a>,
        slots: &Slots<'a>,
        has_no_moves: bool,
        healthy: u32,
    ) -> bool {
        let rollouts = &self.context.rollouts;
        let Some(group) = rollouts.group(&self.group.name) else {
            return rollouts.current.is_some() && changes.deployment_group.is_none();
        };
        let mut edits = changes.edits.values();
        let mut slots = slots.iter();
        has_no_moves
            && changes.places.is_empty()
            && edits.all(|edit| !edit.in_place && edit.followup.is_none())
            && changes.deployment_group.is_none()
            // All allocations beyond the desired total have to be healthy, too: failures wait for
            // the deployment watcher, which ignores completed deployments.
            && slots.all(|view| {
                let is_healthy = view.health().is_some_and(|health| health.healthy);
                let has_failed = view.client_status() == ClientStatus::Failed;
                !self.is_of_current_deployment(view) || (is_healthy && !has_failed)
            })
            && healthy >= group.desired_total.max(group.desired_canaries)
            && (group.desired_canaries == 0 || group.promoted)
    }
}
