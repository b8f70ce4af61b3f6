//! Attempts left: a table over the policy and what was tried.

use std::time::Duration;

use model::allocation::RescheduleEvent;
use model::job::{DelayFunction, ReschedulePolicy};
use model::{AllocId, Allocation, NodeId, Timestamp};
use state::AllocView;
use test_kit::builders::{allocation, service};

use crate::reschedule::is_allowed;

const SECOND: Duration = Duration::from_secs(1);
const NOW: Timestamp = Timestamp(10_000_000_000_000);

fn policy(attempts: u32, delay_function: DelayFunction) -> ReschedulePolicy {
    ReschedulePolicy {
        attempts,
        interval: 600 * SECOND,
        delay: 10 * SECOND,
        delay_function,
        max_delay: Duration::ZERO,
        unlimited: false,
    }
}

/// An allocation after attempts (seconds ago, delay in seconds), oldest first.
fn tried(attempts: &[(u64, u64)]) -> AllocView {
    let reschedules = attempts
        .iter()
        .map(|(ago, delay)| RescheduleEvent {
            time: Timestamp(NOW.0 - ago * 1_000_000_000),
            previous_alloc: AllocId::from_random(1),
            previous_node: NodeId::from_random(1),
            delay: Duration::from_secs(*delay),
        })
        .collect();
    let alloc = Allocation {
        reschedules,
        modify_time: NOW,
        ..allocation(1, &service("web", 1), NodeId::from_random(1))
    };
    AllocView {
        alloc: alloc.into(),
        create_index: 1,
        alloc_modify_index: 1,
        client: None,
        client_modify_index: 0,
    }
}

#[test]
fn attempts_within_the_interval_are_what_is_limited() {
    use DelayFunction::{Constant, Exponential, Fibonacci};
    let unlimited = ReschedulePolicy {
        unlimited: true,
        ..policy(0, Constant)
    };
    let capped = ReschedulePolicy {
        max_delay: 100 * SECOND,
        ..policy(9, Exponential)
    };
    let cases = [
        ("none allowed", policy(0, Constant), vec![], false),
        ("first", policy(1, Constant), vec![], true),
        ("used up", policy(1, Constant), vec![(30, 10)], false),
        ("long ago", policy(1, Constant), vec![(600, 10)], true),
        ("just within", policy(1, Constant), vec![(599, 10)], false),
        ("unlimited", unlimited, vec![(1, 10), (2, 10)], true),
        (
            "doubled beyond the interval",
            policy(9, Exponential),
            vec![(30, 300)],
            false,
        ),
        (
            "doubled within it",
            policy(9, Exponential),
            vec![(30, 299)],
            true,
        ),
        ("doubled and capped", capped, vec![(30, 300)], true),
        (
            "summed beyond the interval",
            policy(9, Fibonacci),
            vec![(60, 300), (30, 300)],
            false,
        ),
        (
            "summed within it",
            policy(9, Fibonacci),
            vec![(60, 100), (30, 300)],
            true,
        ),
        (
            "the first of a series",
            policy(9, Fibonacci),
            vec![(30, 599)],
            true,
        ),
    ];
    for (name, policy, attempts, allowed) in cases {
        assert_eq!(is_allowed(&policy, &tried(&attempts)), allowed, "{name}");
    }
}
