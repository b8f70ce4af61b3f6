//! Whether and when a failed allocation is placed again, elsewhere.

use std::time::Duration;

use model::allocation::RescheduleEvent;
use model::job::{DelayFunction, ReschedulePolicy};
use model::{ClientStatus, DeploymentId, DesiredTransition, EvalStatus, Timestamp, TriggeredBy};
use state::{AllocView, Snapshot};

/// What is due within this time is done at once: an evaluation is not worth so short a wait.
/// Source: Nomad's public behaviour.
const DUE_WINDOW: Duration = Duration::from_secs(1);

/// How many events a policy without limit remembers: the last are enough to tell the next delay.
/// Source: Nomad's public behaviour.
const EVENTS_KEPT: usize = 5;

/// What becomes of an allocation's slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It keeps its slot.
    Keep,
    /// It keeps its slot until then, and needs an evaluation that looks again.
    Later(Timestamp),
    /// It is replaced now.
    Now,
    /// It has no slot any more: whoever is missing is placed anew.
    Gone,
}

/// What the decision depends on besides the allocation.
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
    /// Decides about one allocation whose node is well.
    pub(crate) fn fate(&self, view: &AllocView) -> Fate {
        if view.alloc.next_alloc.is_some() && view.is_terminal() {
            return Fate::Gone;
        }
        let transition = view.alloc.transition;
        let status = view.client_status();
        if self.batch {
            let looked_at = !transition.migrate_disable_placement
                && (transition.reschedule || status == ClientStatus::Failed);
            if looked_at {
                self.evaluate(view)
            } else {
                Fate::Keep
            }
        } else if view.alloc.is_server_terminal()
            || matches!(status, ClientStatus::Complete | ClientStatus::Lost)
        {
            Fate::Gone
        } else {
            self.evaluate(view)
        }
    }

    fn evaluate(&self, view: &AllocView) -> Fate {
        let DesiredTransition {
            reschedule,
            force_reschedule,
            ..
        } = view.alloc.transition;
        let deploying =
            self.active_deployment.is_some() && view.alloc.deployment_id == self.active_deployment;
        // What is being rolled out counts for its deployment first: whether it is healthy is for
        // its node to say, and whether the deployment fails of it for the deployment watcher. A
        // verdict of unhealthy in a deployment that goes on says that another may be tried.
        let is_unhealthy = view.health().is_some_and(|health| !health.healthy);
        if deploying && !reschedule && !is_unhealthy {
            return Fate::Keep;
        }
        if force_reschedule && view.is_client_terminal() {
            return Fate::Now;
        }
        let failed = matches!(
            view.client_status(),
            ClientStatus::Failed | ClientStatus::Lost
        );
        let moves_on = failed || (self.batch && reschedule);
        if moves_on {
            self.by_policy(view, failed_at(view))
        } else {
            Fate::Keep
        }
    }

    /// Decides about one that nobody has heard of since `since`, and that has no successor.
    ///
    /// What counts is the time, not which evaluation looks, so that a blocked one tries again.
    pub(crate) fn fate_of_unknown(&self, view: &AllocView, since: Timestamp) -> Fate {
        self.by_policy(view, since)
    }

    fn by_policy(&self, view: &AllocView, failed_at: Timestamp) -> Fate {
        let Some(policy) = self.policy else {
            return Fate::Keep;
        };
        let events = &view.alloc.reschedules;
        if !is_eligible(policy, events, failed_at) {
            return Fate::Keep;
        }
        let due = failed_at.plus(next_delay(policy, events, failed_at));
        let is_this = view.alloc.followup_eval_id == Some(self.eval_id)
            && self.triggered_by != TriggeredBy::MaxDisconnectTimeout;
        if due <= self.now.plus(DUE_WINDOW) || is_this {
            return Fate::Now;
        }
        if self.is_followed_up(view, due) {
            Fate::Keep
        } else {
            Fate::Later(due)
        }
    }

    /// Returns when one that has failed may be placed again; `None`: not any more, or not while it is
    /// its deployment's business.
    pub(crate) fn next_attempt(&self, view: &AllocView) -> Option<Timestamp> {
        let failed_at = failed_at(view);
        let events = &view.alloc.reschedules;
        let policy = self.policy?;
        let is_eligible = is_eligible(policy, events, failed_at);
        is_eligible.then(|| failed_at.plus(next_delay(policy, events, failed_at)))
    }

    /// Tells whether an evaluation that will look again is still to come, no later than `due`.
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

/// Returns when the allocation failed: its last task's end, else its node's last word, else the
/// last change of what was wanted.
pub(crate) fn failed_at(view: &AllocView) -> Timestamp {
    let Some(client) = &view.client else {
        return view.alloc.modify_time.max(view.alloc.create_time);
    };
    let last_end = client
        .task_states
        .values()
        .map(|task| task.finished_at)
        .max();
    match last_end {
        Some(end) if !end.is_never() => end,
        _ => client.modify_time,
    }
}

/// Tells whether the policy allows one more replacement of an allocation with these `events`.
fn is_eligible(
    policy: &ReschedulePolicy,
    events: &[RescheduleEvent],
    failed_at: Timestamp,
) -> bool {
    if policy.unlimited {
        return true;
    }
    if policy.attempts == 0 {
        return false;
    }
    if events.is_empty() {
        return true;
    }
    let recent = events
        .iter()
        .filter(|event| failed_at.since(event.time) < policy.interval);
    let attempts = u32::try_from(recent.count()).unwrap_or(u32::MAX);
    attempts < policy.attempts && next_delay(policy, events, failed_at) < policy.interval
}

/// Returns how long after `failed_at` the next replacement is due.
///
/// Shape: `events` oldest first.
pub(crate) fn next_delay(
    policy: &ReschedulePolicy,
    events: &[RescheduleEvent],
    failed_at: Timestamp,
) -> Duration {
    let Some(last) = events.last() else {
        return policy.delay;
    };
    let delay = match policy.delay_function {
        DelayFunction::Constant => return policy.delay,
        DelayFunction::Exponential => last.delay.saturating_mul(2),
        DelayFunction::Fibonacci => match events {
            [.., before, last] => {
                let starts_anew = before.delay == policy.max_delay && last.delay == policy.delay;
                if starts_anew {
                    policy.delay
                } else {
                    before.delay.saturating_add(last.delay)
                }
            }
            _ => policy.delay,
        },
    };
    if policy.max_delay.is_zero() || delay <= policy.max_delay {
        delay
    } else if failed_at.since(last.time) > policy.max_delay {
        // It ran well for long enough to start the series anew.
        policy.delay
    } else {
        policy.max_delay
    }
}

/// Returns the events that the replacement of `view` starts with: those that still count, and
/// this one.
pub(crate) fn events_of_replacement(
    view: &AllocView,
    policy: Option<&ReschedulePolicy>,
    failed_at: Timestamp,
    now: Timestamp,
) -> Vec<RescheduleEvent> {
    let old = &view.alloc.reschedules;
    let delay = policy.map_or(Duration::ZERO, |policy| next_delay(policy, old, failed_at));
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
    use model::{AllocId, NodeId};

    use super::*;

    fn secs(secs: u64) -> Duration {
        Duration::from_secs(secs)
    }

    fn at(secs: u64) -> Timestamp {
        Timestamp::from_millis(secs * 1_000)
    }

    fn policy(delay_function: DelayFunction, delay: u64, max_delay: u64) -> ReschedulePolicy {
        ReschedulePolicy {
            attempts: 0,
            interval: Duration::ZERO,
            delay: secs(delay),
            delay_function,
            max_delay: secs(max_delay),
            unlimited: true,
        }
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
    fn scenario_052_exponential_delays_double_up_to_the_maximum() {
        let policy = policy(DelayFunction::Exponential, 5, 90);
        assert_eq!(next_delay(&policy, &[], at(10)), secs(5));
        assert_eq!(next_delay(&policy, &events(&[5, 10, 20]), at(10)), secs(40));
        assert_eq!(next_delay(&policy, &events(&[60]), at(10)), secs(90));
        assert_eq!(next_delay(&policy, &events(&[90]), at(91)), secs(90));
        assert_eq!(
            next_delay(&policy, &events(&[90]), at(92)),
            secs(5),
            "quiet for 91 s"
        );
    }

    #[test]
    fn scenario_053_fibonacci_delays_add_up() {
        let policy = policy(DelayFunction::Fibonacci, 15, 240);
        assert_eq!(next_delay(&policy, &events(&[15]), at(10)), secs(15));
        assert_eq!(next_delay(&policy, &events(&[15, 25]), at(10)), secs(40));
        assert_eq!(next_delay(&policy, &events(&[240, 15]), at(10)), secs(15));
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

    #[test]
    fn constant_delays_stay() {
        let policy = policy(DelayFunction::Constant, 5, 1);
        assert_eq!(next_delay(&policy, &events(&[5, 5]), at(10)), secs(5));
    }

    #[test]
    fn scenario_049_attempts_count_within_the_interval() {
        let limited = ReschedulePolicy {
            attempts: 1,
            interval: secs(60),
            unlimited: false,
            ..policy(DelayFunction::Constant, 5, 0)
        };
        assert!(is_eligible(&limited, &[], at(10)));
        assert!(
            !is_eligible(&limited, &events(&[5]), at(60)),
            "the event is 59 s old"
        );
        assert!(is_eligible(&limited, &events(&[5]), at(61)));
        let disabled = ReschedulePolicy {
            attempts: 0,
            ..limited
        };
        assert!(!is_eligible(&disabled, &[], at(10)));
    }

    #[test]
    fn a_delay_as_long_as_the_interval_is_the_end() {
        let limited = ReschedulePolicy {
            attempts: 9,
            interval: secs(60),
            unlimited: false,
            ..policy(DelayFunction::Exponential, 5, 0)
        };
        assert!(is_eligible(&limited, &events(&[29]), at(10)));
        assert!(!is_eligible(&limited, &events(&[30]), at(10)));
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
    fn what_is_older_than_the_interval_is_forgotten() {
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
    fn an_allocation_failed_when_its_last_task_ended() {
        let ended = |second| model::TaskState {
            finished_at: at(second),
            ..model::TaskState::default()
        };
        let told = |ends: &[u64]| {
            let states = (1..).zip(ends);
            let states = states.map(|(task, second)| (format!("task{task}"), ended(*second)));
            view(Some(model::AllocClient {
                modify_time: at(50),
                task_states: states.collect(),
                ..model::AllocClient::default()
            }))
        };
        assert_eq!(failed_at(&told(&[20, 30, 0])), at(30));
        assert_eq!(failed_at(&told(&[0])), at(50), "nothing has ended");
        assert_eq!(failed_at(&view(None)), at(7), "its node says nothing");
    }

    /// What becomes of one that waits for the evaluation `waits_for`, which is due at `wait_until`
    /// seconds, when `looks` looks: its replacement is due at 70 s, and it is 10 s now.
    fn fate(waits_for: u128, wait_until: u64, looks: u128, triggered_by: TriggeredBy) -> Fate {
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
        rules.fate_of_unknown(&view, at(10))
    }

    #[test]
    fn an_evaluation_that_comes_too_late_is_not_waited_for() {
        let other = TriggeredBy::NodeUpdate;
        assert_eq!(fate(1, 69, 2, other), Fate::Keep);
        assert_eq!(fate(1, 70, 2, other), Fate::Keep);
        assert_eq!(fate(1, 71, 2, other), Fate::Later(at(70)));
    }

    #[test]
    fn the_end_of_its_time_out_of_reach_is_not_what_a_replacement_waits_for() {
        assert_eq!(fate(1, 70, 1, TriggeredBy::AllocReschedule), Fate::Now);
        let timeout = TriggeredBy::MaxDisconnectTimeout;
        assert_eq!(fate(1, 70, 1, timeout), Fate::Keep);
    }
}
