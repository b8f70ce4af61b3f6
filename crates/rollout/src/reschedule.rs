//! May an allocation that failed be replaced at all, by its group's policy?

use std::time::Duration;

use model::Timestamp;
use model::allocation::RescheduleEvent;
use model::job::{DelayFunction, ReschedulePolicy};
use state::AllocView;

/// Tells whether the policy allows another attempt for an allocation that has just failed.
///
/// Source: Nomad's public behaviour: attempts within the interval before the failure count, and
/// the next delay must fit into the interval.
pub(crate) fn is_allowed(policy: &ReschedulePolicy, view: &AllocView) -> bool {
    if policy.unlimited {
        return true;
    }
    let events = &view.alloc.reschedules;
    let failed_at = fail_time(view);
    let recent = events
        .iter()
        .filter(|event| failed_at.since(event.time) < policy.interval)
        .count();
    recent < policy.attempts as usize && next_delay(policy, events, failed_at) < policy.interval
}

/// Returns when the last task finished; while none has, when the allocation last changed.
fn fail_time(view: &AllocView) -> Timestamp {
    let Some(client) = &view.client else {
        return view.alloc.modify_time;
    };
    let finished = client.task_states.values().map(|state| state.finished_at);
    match finished.max() {
        Some(time) if !time.is_never() => time,
        _ => client.modify_time,
    }
}

fn next_delay(
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
            [.., before, last]
                if !(before.delay == policy.max_delay && last.delay == policy.delay) =>
            {
                before.delay.saturating_add(last.delay)
            }
            _ => policy.delay,
        },
    };
    if policy.max_delay == Duration::ZERO || delay <= policy.max_delay {
        return delay;
    }
    // A long quiet time starts the series again.
    if failed_at.since(last.time) > policy.max_delay {
        policy.delay
    } else {
        policy.max_delay
    }
}
