//! Follow-ups of disconnected, lost and failed allocations: their evaluations and updates.

use std::collections::BTreeSet;
use std::time::Duration;

use model::job::TaskGroup;
use model::{AllocId, ClientStatus, EvalStatus, Timestamp, TriggeredBy};
use state::AllocView;

use crate::reconcile::changes::{
    GroupChanges, Mark, NOT_NEEDED, RECONNECTED, RESCHEDULED, StopAsk,
};
use crate::reconcile::classify::{Sets, expiry, has_lost_address};
use crate::reconcile::context::Context;
use crate::reconcile::delayed::{BATCH_WINDOW, Wait, delayed_evals};
use crate::reconcile::reconciler::GroupReconciler;
use crate::reconcile::reconnect::keeps_original;
use crate::reconcile::slots::Waits;

/// The minimum time in which a node stops a task. Source: Nomad's public behaviour.
const KILL_TIMEOUT_MIN: Duration = Duration::from_secs(5);

/// An allocation given up as lost, whose replacement waits until its node has certainly stopped it.
/// It keeps its slot until then.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LostWait<'a> {
    pub(crate) view: &'a AllocView,
    pub(crate) due: Option<Timestamp>,
}

/// Returns the allocations that were given up as lost and have no replacement yet.
pub(crate) fn lost_waits<'a>(
    context: &Context<'a>,
    group: &TaskGroup,
    allocs: &[&'a AllocView],
) -> Vec<LostWait<'a>> {
    if stop_after(group).is_none() {
        return Vec::new();
    }
    let lost = allocs.iter().filter(|view| {
        view.alloc.is_server_terminal()
            && view.alloc.client_status_override == Some(ClientStatus::Lost)
            && view.alloc.next_alloc.is_none()
    });
    let waits = lost.filter_map(|view| {
        let followup = context.snapshot.eval(view.alloc.followup_eval_id?);
        let due = followup.map(|eval| eval.value.wait_until);
        Some(LostWait { view, due })
    });
    waits.collect()
}

fn stop_after(group: &TaskGroup) -> Option<Duration> {
    group.disconnect.as_ref()?.stop_on_client_after
}

impl<'a> GroupReconciler<'a, '_> {
    /// Returns when a node lost now has certainly stopped the group's tasks; `None`: they are
    /// replaced at once.
    pub(crate) fn lost_until(&self) -> Option<Timestamp> {
        let stop_after = stop_after(self.group)?;
        let kill_timeouts = self.group.tasks.iter().map(|task| task.kill_timeout);
        let kill = kill_timeouts.fold(KILL_TIMEOUT_MIN, Duration::max);
        Some(self.context.now.plus(stop_after).plus(kill))
    }

    /// Decides between reconnected allocations and their replacements.
    pub(crate) fn reconnect(&self, sets: &mut Sets<'a>, changes: &mut GroupChanges<'a>) {
        for view in std::mem::take(&mut sets.reconnecting) {
            let mut rivals = self.successors(view);
            rivals.retain(|rival| !rival.alloc.is_server_terminal());
            if view.client_status() == ClientStatus::Failed {
                if rivals.is_empty() {
                    // An ordinary failure.
                    sets.untainted.push(view);
                } else {
                    changes.stops.push(StopAsk::new(view, RESCHEDULED));
                }
                continue;
            }
            let wanted = view.alloc.transition;
            let is_asked_away = wanted.migrate || wanted.reschedule || wanted.force_reschedule;
            let is_of_version = view.alloc.job_version == self.job.value.version
                && view.alloc.job_create_index == self.job.create_index;
            let loses = rivals
                .iter()
                .any(|rival| !keeps_original(self.group, self.context.batch, view, rival));
            if is_asked_away || !is_of_version || loses {
                changes.stops.push(StopAsk::new(view, NOT_NEEDED));
                continue;
            }
            if has_lost_address(self.context, view) {
                if rivals.is_empty() {
                    sets.migrate.push(view);
                } else {
                    let stop = StopAsk::leaving(self.context.snapshot, view);
                    changes.stops.push(stop);
                }
                continue;
            }
            for rival in rivals {
                sets.drop(rival.alloc.id);
                // Those on lost nodes are stopped as lost.
                let is_lost = sets.lost.iter().any(|lost| lost.alloc.id == rival.alloc.id);
                if !is_lost {
                    changes.stops.push(StopAsk::new(rival, RECONNECTED));
                }
            }
            changes.edit(view).mark = Some(Mark::Reconnected);
            changes.desired.reconnect += 1;
            sets.untainted.push(view);
        }
    }

    /// Makes the follow-up evaluations of delayed allocations that are not stopped or updated now,
    /// and assigns them.
    pub(crate) fn follow_up(
        &mut self,
        waits: Waits<'a>,
        updated: &[&'a AllocView],
        changes: &mut GroupChanges<'a>,
    ) {
        let stopped = changes.stops.iter().map(|stop| stop.view);
        let decided: BTreeSet<AllocId> = stopped
            .chain(updated.iter().copied())
            .map(|view| view.alloc.id)
            .collect();
        let goes_on = |view: &AllocView| !decided.contains(&view.alloc.id);
        for view in waits
            .disconnecting
            .iter()
            .copied()
            .filter(|view| goes_on(view))
        {
            changes.edit(view).mark = Some(Mark::Unknown);
            changes.desired.disconnect += 1;
        }
        self.follow_up_unknown(&waits, &decided, changes);
        let mut due = waits.reschedule;
        due.retain(|(view, _)| goes_on(view));
        changes.desired.reschedule_later = u32::try_from(due.len()).unwrap_or(u32::MAX);
        for (view, eval_id) in self.delay(Wait::Reschedule, due) {
            changes.edit(view).followup = Some(eval_id);
        }
        for (view, eval_id) in self.delay(Wait::Lost, new_waits(waits.lost)) {
            let id = view.alloc.id;
            let stops = changes.stops.iter_mut();
            for stop in stops.filter(|stop| stop.view.alloc.id == id) {
                stop.followup = Some(eval_id);
            }
        }
    }

    /// Makes the evaluations for the expiry of disconnected allocations.
    fn follow_up_unknown(
        &mut self,
        waits: &Waits<'a>,
        decided: &BTreeSet<AllocId>,
        changes: &mut GroupChanges<'a>,
    ) {
        let now = self.context.now;
        let new = waits.disconnecting.iter().map(|view| (*view, now));
        let known = waits
            .unknown
            .iter()
            .map(|view| (*view, view.alloc.unknown_since));
        let mut due = Vec::new();
        for (view, since) in new.chain(known) {
            let expires = expiry(self.group, since);
            let expires = expires.filter(|at| !decided.contains(&view.alloc.id) && *at > now);
            if let Some(at) = expires.filter(|at| !self.is_evaluated_by(*at)) {
                due.push((view, at));
            }
        }
        for (view, eval_id) in self.delay(Wait::Disconnect, due) {
            // An allocation marked before keeps its note, which may be about its replacement.
            if let Some(edit) = changes.edits.get_mut(&view.alloc.id) {
                edit.followup = Some(eval_id);
            }
        }
    }

    /// Tells whether a pending evaluation expires allocations at `at` or a little later, or
    /// earlier: then it makes the next one.
    fn is_evaluated_by(&self, at: Timestamp) -> bool {
        let context = &self.context;
        context.snapshot.evals_by_job(context.key).any(|eval| {
            let eval = &eval.value;
            eval.id != context.eval.id
                && eval.status == EvalStatus::Pending
                && eval.triggered_by == TriggeredBy::MaxDisconnectTimeout
                && eval.wait_until <= at.plus(BATCH_WINDOW)
        })
    }

    fn delay(
        &mut self,
        wait: Wait,
        due: Vec<(&'a AllocView, Timestamp)>,
    ) -> Vec<(&'a AllocView, model::EvalId)> {
        let context = &mut *self.context;
        let (evals, waiting) =
            delayed_evals(context.eval, wait, due, context.now, &mut context.rng);
        context.delayed_evals.extend(evals);
        waiting
    }
}

/// Drops those given up before: their evaluation is pending.
fn new_waits(waits: Vec<(&AllocView, Timestamp)>) -> Vec<(&AllocView, Timestamp)> {
    let is_new = |(view, _): &(&AllocView, Timestamp)| !view.alloc.is_server_terminal();
    waits.into_iter().filter(is_new).collect()
}
