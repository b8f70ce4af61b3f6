//! One task group: what it has against what the job wants.

use std::collections::BTreeSet;

use model::job::{TaskGroup, UpdateStrategy};
use model::{ClientStatus, Indexed, Job};
use state::AllocView;

use crate::in_place::InPlace;
use crate::reconcile::Context;
use crate::reconcile::canaries::Canaries;
use crate::reconcile::changes::{Cause, GroupChanges, MIGRATING, NOT_NEEDED, PlaceAsk, StopAsk};
use crate::reconcile::classify::{Home, classify, home, is_marked_unknown};
use crate::reconcile::names::NameIndex;
use crate::reconcile::rollout;
use crate::reconcile::slots::Waits;
use crate::reconcile::spec_change::{Comparison, SpecChange};
use crate::reconcile::stops::Slots;
use crate::reconcile::waiting::{LostWait, lost_waits};

/// Returns what has to change so that nothing of the group `name` runs.
pub(crate) fn stop_all<'a>(
    context: &Context<'a>,
    name: String,
    allocs: Vec<&'a AllocView>,
) -> GroupChanges<'a> {
    let (ended, live): (Vec<_>, Vec<_>) = allocs.into_iter().partition(|view| view.is_terminal());
    let sets = classify(context.snapshot, context.now, None, live);
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
    // Failed ones of a service hold their places until they are replaced: whoever starts the job
    // again wants it to run.
    let held = ended.into_iter().filter(|view| {
        !context.batch && !view.alloc.is_server_terminal() && view.alloc.next_alloc.is_none()
    });
    changes
        .stops
        .extend(held.map(|view| StopAsk::new(view, NOT_NEEDED)));
    changes.desired.stop = len(&changes.stops);
    changes
}

pub(crate) fn len<T>(items: &[T]) -> u32 {
    u32::try_from(items.len()).unwrap_or(u32::MAX)
}

/// Works out one group of a job that is not stopped, step by step.
pub(crate) struct GroupReconciler<'a, 'b> {
    pub(crate) context: &'b mut Context<'a>,
    pub(crate) job: &'a Indexed<Job>,
    pub(crate) group: &'a TaskGroup,
    pub(crate) in_place: &'b mut InPlace<'a>,
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
        let triage = &self.context.triage;
        let is_first_of_version = triage.is_first(self.job, allocs.iter().copied());
        let healthy = match &self.context.triage.current {
            Some(current) => rollout::healthy_count(current.value.id, allocs.iter().copied()),
            None => 0,
        };
        let allocs = self.stop_stale_canaries(allocs, &mut changes);
        let context = &self.context;
        let mut sets = classify(context.snapshot, context.now, Some(self.group), allocs);
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
            is_first_of_version,
            wanted,
            &mut changes,
        );
        // While a version is tried out, what is missing is not placed: canaries may have its numbers.
        let missing = places
            .iter()
            .filter(|ask| is_canarying && matches!(ask.cause, Cause::Missing));
        let withheld: Vec<_> = missing.map(|ask| ask.name_index).collect();
        let wanted_places = places.len();
        let limit = self.apply_places(places, &slots, is_canarying, limit, &mut changes);
        let are_some_withheld = changes.places.len() < wanted_places;
        let replaceable = destructive.iter().map(|view| view.alloc.name_index);
        let mut replaceable: Vec<_> = replaceable.collect();
        replaceable.sort_unstable();
        replaceable.extend(withheld);
        self.place_canaries(wanted, canaries, replaceable, &names, &mut changes);
        let updated = self.apply_destructive(destructive, limit, &mut names, &mut changes);
        self.migrate(&slots.migrate, is_canarying, &mut names, &mut changes);
        let is_settled = is_up_to_date
            && slots.migrate.is_empty()
            && slots.reschedule.is_empty()
            && !are_some_withheld;
        self.follow_up(waits, &updated, &mut changes);
        changes.is_complete = self.is_complete(&changes, &slots, is_settled, healthy);
        changes
    }

    pub(super) fn is_of_version(&self, view: &AllocView) -> bool {
        view.alloc.job_version == self.job.value.version
            && view.alloc.job_create_index == self.job.create_index
    }

    /// Returns how the group is updated; `None`: all at once.
    pub(super) fn update(&self) -> Option<&'a UpdateStrategy> {
        let update = self.group.update.as_ref();
        update.filter(|update| update.max_parallel > 0)
    }

    /// Drops what was stopped before, and ended batch work that a new version wants done again.
    ///
    /// Work that ended well counts as done under a version that would not start it differently.
    /// (Nomad runs it again after any change of the job, even of its count.)
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

    pub(super) fn comparison(&self) -> Comparison<'a> {
        let context = &self.context;
        Comparison::new(context.snapshot, context.key, self.job, self.group)
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

    /// Sorts those that stay into in-place and destructive updates; returns the latter in the order
    /// in which they are replaced.
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
                || (!view.is_terminal() && home(snapshot, view) != Home::Well);
            let change = match comparison.of(view) {
                // Nobody is there to update it.
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
        // Those that serve nobody first: a newer version may have overtaken them, and replacing them
        // makes no more of the group unavailable than is already.
        destructive.sort_by_key(|view| {
            let alloc = &view.alloc;
            let is_proven = rollout::is_proven(view);
            (is_proven, alloc.name_index, view.create_index, alloc.id)
        });
        destructive
    }

    /// Returns what has to be placed apart from updates, canaries and migrations: first the
    /// replacements of the failed, then of those out of reach and the lost, then who is missing.
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

    /// Returns how many may be updated destructively now, before anything is placed.
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
            let triage = &self.context.triage;
            triage.limit(update, self.group.count, counted.copied(), taken_over)
        }
    }

    /// Decides whether the group enters the deployment, or begins one, or changes its part of it.
    fn plan_deployment(
        &self,
        destructive: &[&AllocView],
        places: &[PlaceAsk<'a>],
        is_first_of_version: bool,
        wanted_canaries: u32,
        changes: &mut GroupChanges<'a>,
    ) {
        let triage = &self.context.triage;
        let Some(update) = self.update().filter(|_| !self.context.batch) else {
            return;
        };
        let is_closed = triage.current.is_some() && triage.active_id().is_none();
        if is_closed {
            return;
        }
        if let Some(group) = triage.group(&self.group.name) {
            if wanted_canaries > 0 && group.desired_canaries != wanted_canaries {
                let mut group = group.clone();
                group.desired_canaries = wanted_canaries;
                changes.deployment_group = Some(group);
            }
            return;
        }
        let updates = len(destructive) + changes.desired.in_place_update;
        let desired_total = updates + len(places);
        if desired_total > 0 && (updates > 0 || is_first_of_version) {
            let mut group = rollout::new_group(update, desired_total);
            group.desired_canaries = wanted_canaries;
            changes.deployment_group = Some(group);
        }
    }

    /// Takes over what may be placed now; returns what is left of the update limit.
    fn apply_places(
        &self,
        places: Vec<PlaceAsk<'a>>,
        slots: &Slots<'a>,
        is_canarying: bool,
        limit: u32,
        changes: &mut GroupChanges<'a>,
    ) -> u32 {
        let triage = &self.context.triage;
        let is_ready = !triage.is_paused() && !triage.is_failed() && !is_canarying;
        let wanted = len(&places);
        let allowed = places.into_iter().filter(|ask| match ask.cause {
            Cause::Missing => is_ready,
            // What fails with its deployment is the deployment's business.
            Cause::Reschedule(view) => {
                is_ready || !triage.is_failed() || !self.is_of_current_deployment(view)
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
        let current = self.context.triage.current.as_ref();
        current.is_some_and(|current| view.alloc.deployment_id == Some(current.value.id))
    }

    /// Takes over the destructive updates that the limit allows, and puts them first: each gives
    /// up a place. Returns whom they concern.
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

    /// Moves whoever is to leave its node, whatever the rollout: the pace is the drain's business.
    fn migrate(
        &self,
        migrating: &[&'a AllocView],
        is_canarying: bool,
        names: &mut NameIndex,
        changes: &mut GroupChanges<'a>,
    ) {
        for view in migrating.iter().copied() {
            changes.stops.push(StopAsk::new(view, MIGRATING));
            changes.desired.migrate += 1;
            // Batch work that a drain stops at its deadline is not started again.
            if self.context.batch && view.alloc.transition.migrate_disable_placement {
                continue;
            }
            changes.places.push(PlaceAsk {
                older: self.older(view, is_canarying),
                ..PlaceAsk::new(names.inherit(view.alloc.name_index), Cause::Migrate(view))
            });
        }
    }

    /// Tells whether nothing is left to do for the deployment; what is not in it does not count.
    fn is_complete(
        &self,
        changes: &GroupChanges<'a>,
        slots: &Slots<'a>,
        is_settled: bool,
        healthy: u32,
    ) -> bool {
        let triage = &self.context.triage;
        let Some(group) = triage.group(&self.group.name) else {
            return triage.current.is_some() && changes.deployment_group.is_none();
        };
        let mut edits = changes.edits.values();
        let mut slots = slots.iter();
        is_settled
            && changes.places.is_empty()
            && edits.all(|edit| !edit.in_place && edit.followup.is_none())
            && changes.deployment_group.is_none()
            // Beyond the number that it set out for, too, all of it has to be well: failures wait
            // for the deployment watcher's word, which has none when it is over.
            && slots.all(|view| {
                let is_healthy = view.health().is_some_and(|health| health.healthy);
                let has_failed = view.client_status() == ClientStatus::Failed;
                !self.is_of_current_deployment(view) || (is_healthy && !has_failed)
            })
            && healthy >= group.desired_total.max(group.desired_canaries)
            && (group.desired_canaries == 0 || group.promoted)
    }
}
