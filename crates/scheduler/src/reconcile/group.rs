//! One task group: what it has against what the job wants.

use model::job::TaskGroup;
use model::{ClientStatus, Indexed, Job};
use state::AllocView;

use crate::in_place::InPlace;
use crate::reconcile::Context;
use crate::reconcile::changes::{
    Cause, GroupChanges, LOST, MIGRATING, NOT_NEEDED, PlaceAsk, StopAsk,
};
use crate::reconcile::classify::{Home, Sets, classify, home};
use crate::reconcile::delayed::delayed_evals;
use crate::reconcile::names::NameIndex;
use crate::reconcile::reschedule::{Fate, Rules};
use crate::reconcile::rollout;
use crate::reconcile::spec_change::{Comparison, SpecChange};
use crate::reconcile::stops::Slots;

/// Returns what has to change so that nothing of the group `name` runs.
pub(crate) fn stop_all<'a>(
    context: &Context<'a>,
    name: String,
    allocs: Vec<&'a AllocView>,
) -> GroupChanges<'a> {
    let live = allocs.into_iter().filter(|view| !view.is_terminal());
    let sets = classify(context.snapshot, None, live);
    let mut changes = GroupChanges {
        name,
        is_complete: true,
        ..GroupChanges::default()
    };
    for view in sets.untainted.into_iter().chain(sets.migrate) {
        changes.stops.push(StopAsk {
            view,
            description: NOT_NEEDED,
            client_status: None,
        });
    }
    changes.stops.extend(sets.lost.into_iter().map(lost));
    changes.desired.stop = len(&changes.stops);
    changes
}

fn lost(view: &AllocView) -> StopAsk<'_> {
    StopAsk {
        view,
        description: LOST,
        client_status: Some(ClientStatus::Lost),
    }
}

fn len<T>(items: &[T]) -> u32 {
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
        let allocs = self.drop_history(allocs, &mut changes);
        let is_first_of_version = !allocs.iter().any(|view| self.is_of_version(view));
        let healthy = match &self.context.triage.current {
            Some(current) => rollout::healthy_count(current.value.id, allocs.iter().copied()),
            None => 0,
        };
        let sets = classify(self.context.snapshot, Some(self.group), allocs);
        changes.desired.ignore += len(&sets.ignored);
        let (mut slots, later) = self.reschedule_filter(&sets);
        let mut names = self.names(&slots, &sets.lost);

        changes.stops.extend(sets.lost.iter().copied().map(lost));
        changes.stops.extend(slots.stop_beyond(self.group.count));
        changes.desired.stop += len(&changes.stops);

        let destructive = self.sort_updates(&slots.untainted, &mut changes);
        let places = self.places(&slots, &sets.lost, &mut names);
        let update = self.group.update.as_ref();
        changes.needs_canaries =
            !destructive.is_empty() && update.is_some_and(|update| update.canary > 0);
        let is_up_to_date = destructive.is_empty();
        let limit = if !is_up_to_date || !slots.migrate.is_empty() {
            self.context
                .triage
                .limit(update, self.group.count, &slots.untainted)
        } else {
            self.group.count
        };
        self.plan_deployment(&destructive, &places, is_first_of_version, &mut changes);
        let limit = self.apply_places(places, &slots, limit, &mut changes);
        let updated = self.apply_destructive(destructive, limit, &mut names, &mut changes);
        self.migrate(&slots.migrate, &mut names, &mut changes);
        self.follow_up(later, &updated, &mut changes);
        changes.is_complete = is_up_to_date && self.is_complete(&changes, &slots, healthy);
        changes
    }

    fn is_of_version(&self, view: &AllocView) -> bool {
        view.alloc.job_version == self.job.value.version
            && view.alloc.job_create_index == self.job.create_index
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

    fn comparison(&self) -> Comparison<'a> {
        let context = &self.context;
        Comparison::new(context.snapshot, context.key, self.job, self.group)
    }

    /// Splits those on well nodes by what becomes of their slot.
    fn reschedule_filter(
        &self,
        sets: &Sets<'a>,
    ) -> (Slots<'a>, Vec<(&'a AllocView, model::Timestamp)>) {
        let rules = Rules {
            snapshot: self.context.snapshot,
            batch: self.context.batch,
            policy: self.group.reschedule.as_ref(),
            active_deployment: self.context.triage.active_id(),
            eval_id: self.context.eval.id,
            now: self.context.now,
        };
        let mut slots = Slots {
            untainted: Vec::with_capacity(sets.untainted.len()),
            migrate: sets.migrate.clone(),
            reschedule: Vec::new(),
        };
        let mut later = Vec::new();
        for view in sets.untainted.iter().copied() {
            match rules.fate(view) {
                Fate::Keep => slots.untainted.push(view),
                Fate::Later(at) => {
                    slots.untainted.push(view);
                    later.push((view, at));
                }
                Fate::Now => slots.reschedule.push(view),
                Fate::Gone => {}
            }
        }
        (slots, later)
    }

    fn names(&self, slots: &Slots<'a>, lost: &[&'a AllocView]) -> NameIndex {
        let sets = [
            &slots.untainted[..],
            &slots.migrate,
            &slots.reschedule,
            lost,
        ];
        let used = sets.into_iter().flatten().map(|view| view.alloc.name_index);
        NameIndex::new(self.group.count, used)
    }

    /// Sorts those that stay into in-place and destructive updates; returns the latter, by name.
    fn sort_updates(
        &mut self,
        untainted: &[&'a AllocView],
        changes: &mut GroupChanges<'a>,
    ) -> Vec<&'a AllocView> {
        let snapshot = self.context.snapshot;
        let mut comparison = self.comparison();
        let mut destructive = Vec::new();
        for view in untainted.iter().copied() {
            let change = match comparison.of(view) {
                // Nobody is there to update it.
                _ if !view.is_terminal() && home(snapshot, view) != Home::Well => SpecChange::None,
                SpecChange::InPlace if view.is_terminal() => SpecChange::None,
                SpecChange::InPlace if !self.in_place.can_stay(self.group, view) => {
                    SpecChange::Destructive
                }
                change => change,
            };
            match change {
                SpecChange::None => changes.desired.ignore += 1,
                SpecChange::InPlace => changes.in_place.push(view),
                SpecChange::Destructive => destructive.push(view),
            }
        }
        changes.desired.in_place_update = len(&changes.in_place);
        destructive.sort_by_key(|view| (view.alloc.name_index, view.create_index, view.alloc.id));
        destructive
    }

    /// Returns what has to be placed apart from updates and migrations: first the replacements of
    /// the failed, then of the lost, then who is missing.
    fn places(
        &self,
        slots: &Slots<'a>,
        lost: &[&'a AllocView],
        names: &mut NameIndex,
    ) -> Vec<PlaceAsk<'a>> {
        let mut places = Vec::new();
        for view in slots.reschedule.iter().copied() {
            let name_index = names.inherit(view.alloc.name_index);
            places.push(PlaceAsk {
                name_index,
                cause: Cause::Reschedule(view),
            });
        }
        let mut missing = self.group.count.saturating_sub(slots.len());
        for view in lost.iter().copied() {
            if missing == 0 {
                break;
            }
            missing -= 1;
            let name_index = names.inherit(view.alloc.name_index);
            places.push(PlaceAsk {
                name_index,
                cause: Cause::Lost(view),
            });
        }
        for _ in 0..missing {
            let name_index = names.lowest_free();
            places.push(PlaceAsk {
                name_index,
                cause: Cause::Missing,
            });
        }
        places
    }

    /// Decides whether the group enters the deployment, or begins one.
    fn plan_deployment(
        &self,
        destructive: &[&AllocView],
        places: &[PlaceAsk<'a>],
        is_first_of_version: bool,
        changes: &mut GroupChanges<'a>,
    ) {
        let triage = &self.context.triage;
        let update = self
            .group
            .update
            .as_ref()
            .filter(|update| update.max_parallel > 0);
        let Some(update) = update.filter(|_| !self.context.batch) else {
            return;
        };
        let is_closed = triage.current.is_some() && triage.active_id().is_none();
        if triage.group(&self.group.name).is_some() || is_closed {
            return;
        }
        let updates = len(destructive) + len(&changes.in_place);
        let desired_total = updates + len(places);
        if desired_total > 0 && (updates > 0 || is_first_of_version) {
            changes.new_deployment_group = Some(rollout::new_group(update, desired_total));
        }
    }

    /// Takes over what may be placed now; returns what is left of the update limit.
    fn apply_places(
        &self,
        places: Vec<PlaceAsk<'a>>,
        slots: &Slots<'a>,
        limit: u32,
        changes: &mut GroupChanges<'a>,
    ) -> u32 {
        let triage = &self.context.triage;
        let is_ready = !triage.is_paused() && !triage.is_failed();
        let wanted = len(&places);
        let allowed = places.into_iter().filter(|ask| match ask.cause {
            Cause::Missing => is_ready,
            // What fails with its deployment is the deployment's business.
            Cause::Reschedule(view) => {
                is_ready || !triage.is_failed() || !self.is_of_current_deployment(view)
            }
            Cause::Lost(_) | Cause::Update(_) | Cause::Migrate(_) => true,
        });
        changes.places.extend(allowed);
        changes.desired.place = len(&changes.places);
        changes.desired.reschedule_now = len(&slots.reschedule);
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
        let asks = updated.iter().map(|view| PlaceAsk {
            name_index: names.inherit(view.alloc.name_index),
            cause: Cause::Update(view),
        });
        changes.places.splice(0..0, asks);
        updated
    }

    /// Moves whoever is to leave its node, whatever the rollout: the pace is the drain's business.
    fn migrate(
        &self,
        migrating: &[&'a AllocView],
        names: &mut NameIndex,
        changes: &mut GroupChanges<'a>,
    ) {
        for view in migrating.iter().copied() {
            changes.stops.push(StopAsk {
                view,
                description: MIGRATING,
                client_status: None,
            });
            changes.desired.migrate += 1;
            // Batch work that a drain stops at its deadline is not started again.
            if self.context.batch && view.alloc.transition.migrate_disable_placement {
                continue;
            }
            let name_index = names.inherit(view.alloc.name_index);
            changes.places.push(PlaceAsk {
                name_index,
                cause: Cause::Migrate(view),
            });
        }
    }

    /// Makes the evaluations that look again at those due later, unless they are gone by now.
    fn follow_up(
        &mut self,
        later: Vec<(&'a AllocView, model::Timestamp)>,
        updated: &[&'a AllocView],
        changes: &mut GroupChanges<'a>,
    ) {
        let stopped = changes.stops.iter().map(|stop| stop.view);
        let settled: std::collections::BTreeSet<_> = stopped
            .chain(updated.iter().copied())
            .map(|view| view.alloc.id)
            .collect();
        let due: Vec<_> = later
            .into_iter()
            .filter(|(view, _)| !settled.contains(&view.alloc.id))
            .collect();
        changes.desired.reschedule_later = len(&due);
        let context = &mut *self.context;
        let (evals, waiting) = delayed_evals(context.eval, due, context.now, &mut context.draw);
        context.delayed_evals.extend(evals);
        changes.follow_ups = waiting
            .into_iter()
            .map(|(view, eval)| (view.alloc.id, (view, eval)))
            .collect();
    }

    fn is_complete(&self, changes: &GroupChanges<'a>, slots: &Slots<'a>, healthy: u32) -> bool {
        let triage = &self.context.triage;
        let is_idle = changes.places.is_empty()
            && changes.in_place.is_empty()
            && changes.follow_ups.is_empty()
            && slots.migrate.is_empty()
            && slots.reschedule.is_empty()
            && changes.new_deployment_group.is_none();
        is_idle && triage.current.is_some() && {
            let group = triage.group(&self.group.name);
            group.is_none_or(|group| {
                healthy >= group.desired_total.max(group.desired_canaries)
                    && (group.desired_canaries == 0 || group.promoted)
            })
        }
    }
}
