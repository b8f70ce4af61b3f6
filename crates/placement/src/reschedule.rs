//! Rescheduling: whether a failed allocation may be replaced, and when.
//!
//! One answer for the scheduler, which replaces it, the deployment watcher, which fails a deployment
//! whose allocations may not be replaced, and the gateway, which evaluates a job when a node reports a
//! failure. [`replacement_decision`] answers about one failed allocation; where the answer depends on the
//! asker, [`Purpose`] names it. The scheduler, which knows more of an allocation's slot, asks for
//! [`next_attempt`] alone.

use std::time::Duration;

use model::allocation::RescheduleEvent;
use model::job::{DelayFunction, ReschedulePolicy};
use model::{AllocClient, Allocation, TaskState, Timestamp};

/// Whether and when a failed allocation may be replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplacementDecision {
    /// It leaves no place to fill: the servers stopped it, or a successor has its place.
    NotNeeded,
    /// Its group has no policy, or the policy allows no more attempts.
    Never,
    /// A replacement is allowed from then on.
    From(Timestamp),
}

/// The decision that needs a [`ReplacementDecision`], where the answers differ on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// True if a deployment can recover from the failure.
    Recovery,
    /// True if the failure causes an evaluation. A successor changes nothing: an allocation that
    /// reconnected may have got its place back, and its successor was stopped.
    Evaluation,
    /// True if the allocation's evaluation may be deleted. Attempts are not counted, which errs on the
    /// safe side.
    Deletion,
}

/// Decides whether and when a failed allocation may be replaced.
///
/// `client` is the report of the failure, and `policy` that of its group in the newest job.
pub fn replacement_decision(
    alloc: &Allocation,
    client: Option<&AllocClient>,
    policy: Option<&ReschedulePolicy>,
    purpose: Purpose,
) -> ReplacementDecision {
    let is_needed = match purpose {
        Purpose::Evaluation => !alloc.is_server_terminal(),
        Purpose::Recovery | Purpose::Deletion => has_place(alloc),
    };
    if !is_needed {
        return ReplacementDecision::NotNeeded;
    }
    let Some(policy) = policy else {
        return ReplacementDecision::Never;
    };
    let counted: &[RescheduleEvent] = match purpose {
        Purpose::Deletion => &[],
        Purpose::Recovery | Purpose::Evaluation => &alloc.reschedules,
    };
    let next = next_attempt(policy, counted, failed_at(alloc, client));
    next.map_or(ReplacementDecision::Never, ReplacementDecision::From)
}

/// Returns whether an allocation, once it has failed, still holds a place of its group: the servers want
/// it to run, and no successor was placed.
pub fn has_place(alloc: &Allocation) -> bool {
    !alloc.is_server_terminal() && alloc.next_alloc.is_none()
}

/// Returns the earliest time for the next replacement; `None`: the policy allows no more attempts.
///
/// Shape: `events` are the replacements so far, oldest first.
/// Source: Nomad's public behaviour. Under a limited policy, the first replacement only needs
/// `attempts` above 0. A later one needs fewer than `attempts` replacements in the interval before the
/// failure, and a delay shorter than the interval.
pub fn next_attempt(
    policy: &ReschedulePolicy,
    events: &[RescheduleEvent],
    failed_at: Timestamp,
) -> Option<Timestamp> {
    let delay = next_delay(policy, events, failed_at);
    let is_allowed = policy.unlimited
        || (policy.attempts > 0
            && (events.is_empty()
                || (delay < policy.interval
                    && recent_attempts(policy, events, failed_at) < policy.attempts)));
    is_allowed.then(|| failed_at.plus(delay))
}

fn recent_attempts(
    policy: &ReschedulePolicy,
    events: &[RescheduleEvent],
    failed_at: Timestamp,
) -> u32 {
    let recent = events
        .iter()
        .filter(|event| failed_at.since(event.time) < policy.interval);
    u32::try_from(recent.count()).unwrap_or(u32::MAX)
}

/// Returns the delay of the next replacement after `failed_at`, whether or not it is allowed.
///
/// Shape: `events` oldest first.
pub fn next_delay(
    policy: &ReschedulePolicy,
    events: &[RescheduleEvent],
    failed_at: Timestamp,
) -> Duration {
    let Some(last) = events.last() else {
        return policy.delay;
    };
    let before = events.iter().rev().nth(1).map(|event| event.delay);
    let starts_anew = policy.delay_function == DelayFunction::Fibonacci
        && before == Some(policy.max_delay)
        && last.delay == policy.delay;
    let delay = if starts_anew {
        policy.delay
    } else {
        policy.following_delay(before, Some(last.delay))
    };
    if !policy.is_above_max(delay) {
        delay
    } else if failed_at.since(last.time) > policy.max_delay {
        // The allocation ran for long enough to restart the series.
        policy.delay
    } else {
        policy.max_delay
    }
}

/// Returns when an allocation failed: the end of its last task, else the node's last report, else the
/// last change of the allocation.
///
/// The end is a time of the node's clock, which may be off by hours. So it is kept between two times of
/// the servers: a task ended no sooner after the allocation's creation than it ran, and not after the
/// report came in.
pub fn failed_at(alloc: &Allocation, client: Option<&AllocClient>) -> Timestamp {
    let created = alloc.create_time;
    let Some(client) = client else {
        return alloc.modify_time.max(created);
    };
    let ended = client.task_states.values();
    let ended = ended.filter(|task| !task.finished_at.is_never());
    let last_end = ended.map(|task| task.finished_at.max(created.plus(time_run(task))));
    let reported = client.modify_time;
    let end = last_end.max().map_or(reported, |end| end.min(reported));
    end.max(created)
}

/// Returns the duration of a task's last run; zero: it has not started.
fn time_run(task: &TaskState) -> Duration {
    if task.started_at.is_never() {
        return Duration::ZERO;
    }
    task.finished_at.since(task.started_at)
}

#[cfg(test)]
mod tests {
    use model::{AllocId, DesiredStatus, NodeId};
    use test_kit::builders;

    use test_kit::builders::reschedule_policy as policy;

    use super::*;

    /// The failure in all cases, in seconds.
    const FAILURE: u64 = 10_000;

    fn secs(secs: u64) -> Duration {
        Duration::from_secs(secs)
    }

    fn at(secs: u64) -> Timestamp {
        Timestamp::from_millis(secs * 1_000)
    }

    fn limited(attempts: u32, delay_function: DelayFunction) -> ReschedulePolicy {
        ReschedulePolicy {
            attempts,
            interval: secs(600),
            unlimited: false,
            ..policy(delay_function, 10, 0)
        }
    }

    /// Events at these times (seconds before the failure) with these delays, oldest first.
    fn events(tried: &[(u64, u64)]) -> Vec<RescheduleEvent> {
        let event = |(ago, delay): &(u64, u64)| RescheduleEvent {
            time: at(FAILURE - ago),
            previous_alloc: AllocId::default(),
            previous_node: NodeId::default(),
            delay: secs(*delay),
        };
        tried.iter().map(event).collect()
    }

    /// One row of the table: policy, events, delay of the next attempt if one is allowed.
    type Case<'a> = (&'a str, ReschedulePolicy, &'a [(u64, u64)], Option<u64>);

    #[test]
    fn attempts_are_limited_within_the_interval_and_their_delay_must_fit_into_it() {
        use DelayFunction::{Constant, Exponential, Fibonacci};
        let unlimited = policy(Constant, 10, 0);
        let capped = ReschedulePolicy {
            max_delay: secs(100),
            ..limited(9, Exponential)
        };
        let as_long_as_the_interval = ReschedulePolicy {
            delay: secs(600),
            ..limited(1, Constant)
        };
        let cases: [Case<'_>; 19] = [
            ("no attempts", limited(0, Constant), &[], None),
            ("first", limited(1, Constant), &[], Some(10)),
            ("used up", limited(1, Constant), &[(30, 10)], None),
            ("a second", limited(2, Constant), &[(30, 10)], Some(10)),
            ("just outside", limited(1, Constant), &[(600, 10)], Some(10)),
            ("just within", limited(1, Constant), &[(599, 10)], None),
            ("unlimited", unlimited, &[(2, 10), (1, 10)], Some(10)),
            (
                "doubled to the interval",
                limited(9, Exponential),
                &[(30, 300)],
                None,
            ),
            (
                "doubled below it",
                limited(9, Exponential),
                &[(30, 299)],
                Some(598),
            ),
            ("doubled and capped", capped, &[(30, 300)], Some(100)),
            (
                "summed to the interval",
                limited(9, Fibonacci),
                &[(60, 300), (30, 300)],
                None,
            ),
            (
                "summed below it",
                limited(9, Fibonacci),
                &[(60, 100), (30, 300)],
                Some(400),
            ),
            (
                "one of a series",
                limited(9, Fibonacci),
                &[(30, 599)],
                Some(10),
            ),
            // The first attempt is allowed whatever its delay, later ones are not.
            ("first, long", as_long_as_the_interval, &[], Some(600)),
            ("later, long", as_long_as_the_interval, &[(700, 600)], None),
            (
                "capped, quiet",
                policy(Exponential, 5, 90),
                &[(91, 90)],
                Some(5),
            ),
            (
                "capped, busy",
                policy(Exponential, 5, 90),
                &[(90, 90)],
                Some(90),
            ),
            ("no cap", policy(Exponential, 5, 0), &[(1, 90)], Some(180)),
            (
                "constant above the cap",
                policy(Constant, 5, 1),
                &[(2, 5), (1, 5)],
                Some(5),
            ),
        ];
        for (name, policy, tried, delay) in cases {
            let next = next_attempt(&policy, &events(tried), at(FAILURE));
            assert_eq!(next, delay.map(|delay| at(FAILURE + delay)), "{name}");
        }
    }

    #[test]
    fn the_decision_about_a_failed_allocation_depends_on_the_purpose_where_it_says_so() {
        use Purpose::{Deletion, Evaluation, Recovery};
        let job = builders::service("web", 1);
        // (stopped, has a successor, attempts made) → seconds after the failure, for each purpose
        let limited = limited(1, DelayFunction::Constant);
        let from = |secs| ReplacementDecision::From(at(FAILURE + secs));
        let (not_needed, never) = (ReplacementDecision::NotNeeded, ReplacementDecision::Never);
        for (name, policy, (is_stopped, has_successor, tried), expected) in [
            (
                "first",
                Some(limited),
                (false, false, &[][..]),
                [from(10); 3],
            ),
            (
                "used up",
                Some(limited),
                (false, false, &[(30, 10)][..]),
                [never, never, from(10)],
            ),
            ("no policy", None, (false, false, &[][..]), [never; 3]),
            (
                "replaced",
                Some(limited),
                (false, true, &[][..]),
                [not_needed, from(10), not_needed],
            ),
            (
                "stopped",
                Some(limited),
                (true, false, &[][..]),
                [not_needed; 3],
            ),
        ] {
            let mut alloc = builders::allocation(1, &job, NodeId::default());
            alloc.reschedules = events(tried);
            if is_stopped {
                alloc.desired_status = DesiredStatus::Stop;
            }
            alloc.next_alloc = has_successor.then(AllocId::default);
            let client = AllocClient {
                modify_time: at(FAILURE),
                ..AllocClient::default()
            };
            let found = [Recovery, Evaluation, Deletion].map(|purpose| {
                replacement_decision(&alloc, Some(&client), policy.as_ref(), purpose)
            });
            assert_eq!(found, expected, "{name}");
        }
    }

    #[test]
    fn scenario_049_attempts_count_within_the_interval() {
        let limited = ReschedulePolicy {
            interval: secs(60),
            ..limited(1, DelayFunction::Constant)
        };
        let is_allowed = |policy: &ReschedulePolicy, tried: &[(u64, u64)]| {
            next_attempt(policy, &events(tried), at(FAILURE)).is_some()
        };
        assert!(is_allowed(&limited, &[]));
        assert!(!is_allowed(&limited, &[(59, 5)]));
        assert!(is_allowed(&limited, &[(60, 5)]));
        let disabled = ReschedulePolicy {
            attempts: 0,
            ..limited
        };
        assert!(!is_allowed(&disabled, &[]));
    }

    /// Returns the delay after events a second apart, the first 9 s before the failure.
    fn delay(policy: &ReschedulePolicy, delays: &[u64]) -> Duration {
        let tried: Vec<_> = (1..=9).rev().zip(delays.iter().copied()).collect();
        next_delay(policy, &events(&tried), at(FAILURE))
    }

    #[test]
    fn scenario_052_exponential_delays_double_up_to_the_maximum() {
        let policy = policy(DelayFunction::Exponential, 5, 90);
        assert_eq!(delay(&policy, &[]), secs(5));
        assert_eq!(delay(&policy, &[5, 10, 20]), secs(40));
        assert_eq!(delay(&policy, &[60]), secs(90));
    }

    #[test]
    fn scenario_053_fibonacci_delays_add_up() {
        let policy = policy(DelayFunction::Fibonacci, 15, 240);
        assert_eq!(delay(&policy, &[15]), secs(15));
        assert_eq!(delay(&policy, &[15, 25]), secs(40));
        assert_eq!(delay(&policy, &[240, 15]), secs(15));
    }

    /// Returns when an allocation failed that was created at second 5 and changed at second 7, after a
    /// report at second `reported` that its tasks started and ended at `runs`; 0: not.
    fn failed(reported: u64, runs: &[(u64, u64)]) -> Timestamp {
        let job = builders::service("web", 1);
        let mut alloc = builders::allocation(1, &job, NodeId::default());
        (alloc.create_time, alloc.modify_time) = (at(5), at(7));
        let states = (1..).zip(runs).map(|(task, (start, end))| {
            let state = TaskState {
                started_at: at(*start),
                finished_at: at(*end),
                ..TaskState::default()
            };
            (format!("task{task}"), state)
        });
        let client = AllocClient {
            modify_time: at(reported),
            task_states: states.collect(),
            ..AllocClient::default()
        };
        failed_at(&alloc, Some(&client))
    }

    #[test]
    fn an_allocation_failed_when_its_last_task_ended_within_the_times_of_the_servers() {
        // Created at 5.
        for (name, reported, runs, expected) in [
            ("the last task", 50, &[(6, 20), (6, 30), (7, 0)][..], 30),
            ("no task has ended", 50, &[(6, 0)], 50),
            ("no task", 50, &[], 50),
            ("at once", 50, &[(5, 5)], 5),
            ("at the report", 50, &[(6, 50)], 50),
            ("not started", 50, &[(0, 8)], 8),
            // The node's clock is late.
            ("late, not started", 50, &[(0, 4)], 5),
            ("late, ended at once", 50, &[(4, 4)], 5),
            ("late, ran for 10 s", 50, &[(1, 11)], 15),
            ("late, the longer of two", 50, &[(1, 11), (1, 21)], 25),
            ("put forward while it ran", 50, &[(1, 49)], 50),
            ("put back while it ran", 50, &[(20, 3)], 5),
            // The node's clock is early.
            ("early", 50, &[(46, 51)], 50),
            (
                "early by a day, for one task",
                50,
                &[(6, 20), (6, 90_000)],
                50,
            ),
            // The clock of the gateway is later than that of the plan-applier.
            ("reported before it was created", 4, &[(6, 30)], 5),
        ] {
            assert_eq!(failed(reported, runs), at(expected), "{name}");
        }
    }

    #[test]
    fn an_allocation_without_a_report_failed_when_it_was_changed_last() {
        let job = builders::service("web", 1);
        let mut alloc = builders::allocation(1, &job, NodeId::default());
        (alloc.create_time, alloc.modify_time) = (at(5), at(7));
        assert_eq!(failed_at(&alloc, None), at(7));
    }

    #[test]
    fn a_node_whose_clock_is_wrong_delays_no_replacement_and_hastens_none() {
        let job = builders::service("web", 1);
        let mut alloc = builders::allocation(1, &job, NodeId::default());
        alloc.create_time = at(FAILURE - 2);
        let policy = limited(1, DelayFunction::Constant);
        for (name, end, due) in [
            ("right", FAILURE, FAILURE + 10),
            ("an hour late", FAILURE - 3_600, FAILURE - 2 + 10),
            ("an hour early", FAILURE + 3_600, FAILURE + 10),
        ] {
            let state = TaskState {
                finished_at: at(end),
                ..TaskState::default()
            };
            let client = AllocClient {
                modify_time: at(FAILURE),
                task_states: [("server".to_owned(), state)].into(),
                ..AllocClient::default()
            };
            for purpose in [Purpose::Recovery, Purpose::Evaluation, Purpose::Deletion] {
                let found = replacement_decision(&alloc, Some(&client), Some(&policy), purpose);
                assert_eq!(
                    found,
                    ReplacementDecision::From(at(due)),
                    "{name}, {purpose:?}"
                );
            }
        }
    }
}
