//! Reschedule decisions: whether a failed or disconnected allocation is replaced now, later or
//! never.

use std::time::Duration;

use model::allocation::RescheduleEvent;
use model::job::ReschedulePolicy;
use model::{ClientStatus, DeploymentId, DesiredTransition, EvalStatus, Timestamp, TriggeredBy};
use placement::reschedule;
use state::{AllocView, Snapshot};

/// Delays that end within this time are skipped: they are not worth an evaluation. Source: Nomad's
/// public behaviour.
const DUE_WINDOW: Duration = Duration::from_secs(1);

/// The number of events that an unlimited policy keeps: enough to compute the next delay. Source:
/// Nomad's public behaviour.
const EVENTS_KEPT: usize = 5;

/// The decision about an allocation's slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SlotDecision {
    /// It keeps its slot.
    Keep,
    /// It keeps its slot until then, and needs a follow-up evaluation.
    Later(Timestamp),
    /// It is replaced now.
    Now,
    /// It has no slot any more: a missing allocation is placed instead.
    Gone,
}

/// The inputs of the decision besides the allocation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules<'a> {
    pub(crate) snapshot: &'a Snapshot,
    pub(crate) batch: bool,
    pub(crate) policy: Option<&'a ReschedulePolicy>,
    /// The job's deployment, while it is active.
    pub(crate) active_deployment: Option<DeploymentId>,
    pub(crate) eval_id: model::EvalId,
    pub(crate) triggered_by: TriggeredBy,
    pub(crate) now: Timestamp,
}

impl Rules<'_> {
    /// Decides about an allocation on a connected node.
    pub(crate) fn decide(&self, view: &AllocView) -> SlotDecision {
        if view.alloc.next_alloc.is_some() && view.is_terminal() {
            return SlotDecision::Gone;
        }
        let transition = view.alloc.transition;
        let status = view.client_status();
        if self.batch {
            let looked_at = !transition.migrate_disable_placement
                && (transition.reschedule || status == ClientStatus::Failed);
            if looked_at {
                self.evaluate(view)
            } else {
                SlotDecision::Keep
            }
        } else if view.alloc.is_server_terminal()
            || matches!(status, ClientStatus::Complete | ClientStatus::Lost)
        {
            SlotDecision::Gone
        } else {
            self.evaluate(view)
        }
    }

    fn evaluate(&self, view: &AllocView) -> SlotDecision {
        let DesiredTransition {
            reschedule,
            force_reschedule,
            ..
        } = view.alloc.transition;
        let deploying =
            self.active_deployment.is_some() && view.alloc.deployment_id == self.active_deployment;
        // In an active deployment, health comes first: the node decides whether the allocation is
        // healthy, and the deployment watcher whether the deployment fails. An unhealthy verdict in
        // a deployment that stays active allows a replacement.
        let is_unhealthy = view.health().is_some_and(|health| !health.healthy);
        if deploying && !reschedule && !is_unhealthy {
            return SlotDecision::Keep;
        }
        if force_reschedule && view.is_client_terminal() {
            return SlotDecision::Now;
        }
        let failed = matches!(
            view.client_status(),
            ClientStatus::Failed | ClientStatus::Lost
        );
        let moves_on = failed || (self.batch && reschedule);
        if moves_on {
            self.by_policy(view, failed_at(view))
        } else {
            SlotDecision::Keep
        }
    }

    /// Decides about an allocation without a successor, disconnected since `since`.
    ///
    /// Once the policy's delay is over, every evaluation replaces it, not only its follow-up: a blocked
    /// evaluation can retry a placement that failed.
    pub(crate) fn decide_unknown(&self, view: &AllocView, since: Timestamp) -> SlotDecision {
        self.by_policy(view, since)
    }

    fn by_policy(&self, view: &AllocView, failed_at: Timestamp) -> SlotDecision {
        let Some(policy) = self.policy else {
            return SlotDecision::Keep;
        };
        let events = &view.alloc.reschedules;
        let Some(due) = reschedule::next_attempt(policy, events, failed_at) else {
            return SlotDecision::Keep;
        };
        let is_this = view.alloc.followup_eval_id == Some(self.eval_id)
            && self.triggered_by != TriggeredBy::MaxDisconnectTimeout;
        if due <= self.now.plus(DUE_WINDOW) || is_this {
            return SlotDecision::Now;
        }
        if self.is_followed_up(view, due) {
            SlotDecision::Keep
        } else {
            SlotDecision::Later(due)
        }
    }

    /// Returns when a failed allocation may be replaced; `None`: its policy allows no more attempts.
    pub(crate) fn next_attempt(&self, view: &AllocView) -> Option<Timestamp> {
        reschedule::next_attempt(self.policy?, &view.alloc.reschedules, failed_at(view))
    }

    /// Tells whether a follow-up evaluation is pending, no later than `due`.
    fn is_followed_up(&self, view: &AllocView, due: Timestamp) -> bool {
        let followup = view
            .alloc
            .followup_eval_id
            .and_then(|id| self.snapshot.eval(id));
        followup.is_some_and(|eval| {
            eval.value.status == EvalStatus::Pending && eval.value.wait_until <= due
        })
    }
}

/// Returns when the allocation failed.
pub(crate) fn failed_at(view: &AllocView) -> Timestamp {
    reschedule::failed_at(&view.alloc, view.client.as_deref())
}

/// Returns the reschedule history of the replacement of `view`: the last events, and this one.
///
/// A limited policy keeps the events that are not older than its interval. An event that is exactly
/// as old is kept, although it no longer counts as an attempt ([`reschedule::next_attempt`]): the next
/// Fibonacci delay is the sum of it and this one.
/// Source: Nomad's public behaviour, in both bounds.
pub(crate) fn events_of_replacement(
    view: &AllocView,
    policy: Option<&ReschedulePolicy>,
    failed_at: Timestamp,
    now: Timestamp,
) -> Vec<RescheduleEvent> {
    let old = &view.alloc.reschedules;
    let delay = policy.map_or(Duration::ZERO, |policy| {
        reschedule::next_delay(policy, old, failed_at)
    });
    let mut events = match policy {
        Some(policy) if !policy.unlimited => old
            .iter()
            .filter(|event| now.since(event.time) <= policy.interval)
            .copied()
            .collect(),
        _ => old[old.len().saturating_sub(EVENTS_KEPT)..].to_vec(),
    };
    events.push(RescheduleEvent {
        time: now,
        previous_alloc: view.alloc.id,
        previous_node: view.alloc.node_id,
        delay,
    });
    events
}

#[cfg(test)]
mod tests {
    use model::job::DelayFunction;
    use model::{AllocId, NodeId};

    use test_kit::builders::reschedule_policy as policy;

    use super::*;

    fn secs(secs: u64) -> Duration {
        Duration::from_secs(secs)
    }

    fn at(secs: u64) -> Timestamp {
        Timestamp::from_millis(secs * 1_000)
    }

    /// Events a second apart from second 1 on, with these delays.
    fn events(delays: &[u64]) -> Vec<RescheduleEvent> {
        (1..)
            .zip(delays)
            .map(|(second, delay)| RescheduleEvent {
                time: at(second),
                previous_alloc: AllocId::default(),
                previous_node: NodeId::default(),
                delay: secs(*delay),
            })
            .collect()
    }

    #[test]
    fn scenario_054_a_policy_without_limit_remembers_the_last_events() {
        let mut job = test_kit::builders::service("web", 1);
        job.version = 3;
        let mut alloc = test_kit::builders::allocation(1, &job, NodeId::default());
        alloc.reschedules = events(&[5, 10, 20, 40, 80, 160, 170, 170]);
        let view = AllocView {
            alloc: alloc.into(),
            create_index: 1,
            alloc_modify_index: 1,
            client: None,
            client_modify_index: 0,
        };
        let policy = policy(DelayFunction::Constant, 170, 0);
        let events = events_of_replacement(&view, Some(&policy), at(100), at(300));
        let times: Vec<_> = events.iter().map(|event| event.time).collect();
        assert_eq!(times, [at(4), at(5), at(6), at(7), at(8), at(300)]);
        let last = events[5];
        assert_eq!(
            (last.previous_alloc, last.delay),
            (view.alloc.id, secs(170))
        );
    }

    fn view(client: Option<model::AllocClient>) -> AllocView {
        let job = test_kit::builders::service("web", 1);
        let mut alloc = test_kit::builders::allocation(1, &job, NodeId::default());
        (alloc.create_time, alloc.modify_time) = (at(5), at(7));
        AllocView {
            alloc: alloc.into(),
            create_index: 1,
            alloc_modify_index: 1,
            client: client.map(Into::into),
            client_modify_index: 0,
        }
    }

    #[test]
    fn events_older_than_the_interval_are_forgotten() {
        let mut view = view(None);
        let mut alloc = model::Allocation::clone(&view.alloc);
        alloc.reschedules = events(&[5, 5, 5]);
        view.alloc = alloc.into();
        let limited = ReschedulePolicy {
            attempts: 9,
            interval: secs(60),
            unlimited: false,
            ..policy(DelayFunction::Constant, 5, 0)
        };
        let events = events_of_replacement(&view, Some(&limited), at(61), at(62));
        let times: Vec<_> = events.iter().map(|event| event.time).collect();
        assert_eq!(times, [at(2), at(3), at(62)]);
    }

    #[test]
    fn an_event_as_old_as_the_interval_counts_for_the_next_delay_but_not_as_an_attempt() {
        let mut view = view(None);
        let mut alloc = model::Allocation::clone(&view.alloc);
        alloc.reschedules = events(&[20]);
        view.alloc = alloc.into();
        let limited = ReschedulePolicy {
            attempts: 2,
            interval: secs(60),
            unlimited: false,
            ..policy(DelayFunction::Fibonacci, 10, 50)
        };
        let events = events_of_replacement(&view, Some(&limited), at(61), at(61));
        let times: Vec<_> = events.iter().map(|event| event.time).collect();
        assert_eq!(times, [at(1), at(61)]);
        // One attempt of two is left, after 20 s and 10 s.
        let next = reschedule::next_attempt(&limited, &events, at(61));
        assert_eq!(next, Some(at(61 + 30)));
    }

    /// Returns the fate of an allocation that waits for the evaluation `waits_for`, which is due at
    /// `wait_until` seconds, when `looks` looks: its replacement is due at 70 s, and it is 10 s
    /// now.
    fn fate(
        waits_for: u128,
        wait_until: u64,
        looks: u128,
        triggered_by: TriggeredBy,
    ) -> SlotDecision {
        let job = test_kit::builders::service("web", 1);
        let mut eval = model::Evaluation::pending(
            model::EvalId::from_random(waits_for),
            job.key(),
            job.job_type,
            job.priority,
            TriggeredBy::AllocReschedule,
            at(10),
        );
        eval.wait_until = at(wait_until);
        let stored = state::Change::Put {
            key: state::Key::Eval(eval.id),
            entity: state::Entity::Eval(Box::new(eval.clone())),
            create_index: 1,
            modify_index: 1,
        };
        let mut view = view(None);
        let mut alloc = model::Allocation::clone(&view.alloc);
        alloc.followup_eval_id = Some(eval.id);
        view.alloc = alloc.into();
        let rules = Rules {
            snapshot: &state::State::from_list(1, [stored]).snapshot(),
            batch: false,
            policy: Some(&policy(DelayFunction::Constant, 60, 0)),
            active_deployment: None,
            eval_id: model::EvalId::from_random(looks),
            triggered_by,
            now: at(10),
        };
        rules.decide_unknown(&view, at(10))
    }

    #[test]
    fn an_evaluation_that_comes_too_late_is_not_waited_for() {
        let other = TriggeredBy::NodeUpdate;
        assert_eq!(fate(1, 69, 2, other), SlotDecision::Keep);
        assert_eq!(fate(1, 70, 2, other), SlotDecision::Keep);
        assert_eq!(fate(1, 71, 2, other), SlotDecision::Later(at(70)));
    }

    #[test]
    fn a_replacement_does_not_wait_for_the_end_of_a_disconnect() {
        assert_eq!(
            fate(1, 70, 1, TriggeredBy::AllocReschedule),
            SlotDecision::Now
        );
        let timeout = TriggeredBy::MaxDisconnectTimeout;
        assert_eq!(fate(1, 70, 1, timeout), SlotDecision::Keep);
    }
}
