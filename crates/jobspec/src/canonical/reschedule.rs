//! The reschedule policy: when and how often a failed allocation is placed again, elsewhere.

use std::time::Duration;

use model::duration::show;
use model::job::{DelayFunction, JobType, ReschedulePolicy};
use model::spec;

use super::check::{Check, Path};
use super::group::{NO_RESCHEDULE, has_reschedule};
use super::job::Inherited;

/// Source: Nomad's bounds.
const MIN_DELAY: Duration = Duration::from_secs(5);
const MIN_INTERVAL: Duration = Duration::from_secs(15);

const FUNCTIONS: [(&str, DelayFunction); 3] = [
    ("constant", DelayFunction::Constant),
    ("exponential", DelayFunction::Exponential),
    ("fibonacci", DelayFunction::Fibonacci),
];

/// Returns the group's policy: its own attributes over the job's, over the defaults of the type;
/// `None`: none, failed allocations are not placed again for that.
pub(super) fn reschedule(
    check: &mut Check,
    path: &Path,
    spec: Option<&spec::ReschedulePolicy>,
    inherited: &Inherited<'_>,
) -> Option<ReschedulePolicy> {
    let job = inherited.reschedule;
    let merged = overlay(spec, job);
    let is_asked_for = spec.is_some() || job.is_some();
    if !has_reschedule(inherited.job_type) && !grants_attempts(&merged) {
        if spec.is_some() {
            check.error(path.field("reschedule"), NO_RESCHEDULE);
        }
        return None;
    }
    let defaults = defaults(inherited.job_type);
    if !is_asked_for {
        return Some(defaults);
    }
    let path = path.block("reschedule");
    let errors_before = check.error_count();
    let policy = read(check, &path, &merged, &defaults);
    if check.error_count() == errors_before {
        combination(check, &path, &policy);
    }
    Some(policy)
}

/// Tells whether a policy says by itself that failed allocations are placed again: jobs that are to be
/// on every node only have one that does.
pub(super) fn grants_attempts(spec: &spec::ReschedulePolicy) -> bool {
    spec.unlimited == Some(true) || spec.attempts.is_some_and(|attempts| attempts != 0)
}

fn defaults(job_type: JobType) -> ReschedulePolicy {
    if job_type == JobType::Batch {
        return ReschedulePolicy {
            attempts: 1,
            interval: Duration::from_secs(24 * 3_600),
            delay: Duration::from_secs(5),
            delay_function: DelayFunction::Constant,
            max_delay: Duration::ZERO,
            unlimited: false,
        };
    }
    ReschedulePolicy {
        attempts: 0,
        interval: Duration::ZERO,
        delay: Duration::from_secs(30),
        delay_function: DelayFunction::Exponential,
        max_delay: Duration::from_secs(3_600),
        unlimited: job_type == JobType::Service,
    }
}

fn overlay(
    group: Option<&spec::ReschedulePolicy>,
    job: Option<&spec::ReschedulePolicy>,
) -> spec::ReschedulePolicy {
    let group = group.cloned().unwrap_or_default();
    let job = job.cloned().unwrap_or_default();
    spec::ReschedulePolicy {
        attempts: group.attempts.or(job.attempts),
        interval: group.interval.or(job.interval),
        delay: group.delay.or(job.delay),
        delay_function: group.delay_function.or(job.delay_function),
        max_delay: group.max_delay.or(job.max_delay),
        unlimited: group.unlimited.or(job.unlimited),
    }
}

fn read(
    check: &mut Check,
    path: &Path,
    spec: &spec::ReschedulePolicy,
    defaults: &ReschedulePolicy,
) -> ReschedulePolicy {
    ReschedulePolicy {
        attempts: check.number(path.field("attempts"), spec.attempts, defaults.attempts),
        interval: check.duration(
            path.field("interval"),
            spec.interval.as_ref(),
            defaults.interval,
        ),
        delay: check.duration(path.field("delay"), spec.delay.as_ref(), defaults.delay),
        delay_function: check.choice(
            path.field("delay_function"),
            spec.delay_function.as_deref(),
            &FUNCTIONS,
            defaults.delay_function,
            |function| {
                format!(
                    "Invalid delay function {function:?}, must be one of \
                     [\"constant\" \"exponential\" \"fibonacci\"]",
                )
            },
        ),
        max_delay: check.duration(
            path.field("max_delay"),
            spec.max_delay.as_ref(),
            defaults.max_delay,
        ),
        unlimited: spec.unlimited.unwrap_or(defaults.unlimited),
    }
}

fn combination(check: &mut Check, path: &Path, policy: &ReschedulePolicy) {
    if policy.attempts == 0 && !policy.unlimited {
        return; // Rescheduling is off; what else stands here is never used.
    }
    if policy.attempts > 0 && policy.unlimited {
        let message = "If Attempts >0, Unlimited cannot also be set to true: add unlimited = \
                       false, or leave attempts out";
        check.error(path.field("attempts"), message);
        return;
    }
    if policy.delay < MIN_DELAY {
        let message = format!(
            "Delay cannot be less than {}; got {}: write a longer one",
            show(MIN_DELAY),
            show(policy.delay),
        );
        check.error(path.field("delay"), message);
        return;
    }
    if policy.delay_function != DelayFunction::Constant && policy.max_delay < policy.delay {
        let message = format!(
            "Max Delay cannot be less than Delay; got {} and {}: raise max_delay",
            show(policy.max_delay),
            show(policy.delay),
        );
        check.error(path.field("max_delay"), message);
        return;
    }
    if !policy.unlimited {
        attempts_fit(check, path, policy);
    }
}

/// Checks that all attempts of a limited policy fit into its interval.
fn attempts_fit(check: &mut Check, path: &Path, policy: &ReschedulePolicy) {
    let field = path.field("interval");
    if policy.interval.is_zero() {
        let message = "Interval must be a non zero value if Attempts > 0: write, for instance, \
                       interval = \"1h\"";
        check.error(field, message);
        return;
    }
    if policy.interval < MIN_INTERVAL {
        let message = format!(
            "Interval cannot be less than {}; got {}: write a longer one",
            show(MIN_INTERVAL),
            show(policy.interval),
        );
        check.error(field, message);
        return;
    }
    let needed = total_delay_ns(policy);
    if needed > policy.interval.as_nanos() {
        let suggested = u64::try_from(needed.div_ceil(1_000_000_000)).unwrap_or(u64::MAX);
        let message = format!(
            "All {} attempts with initial delay {} and delay function {} need an interval of {} or \
             more; got {}: lengthen the interval or lower attempts",
            policy.attempts,
            show(policy.delay),
            FUNCTIONS
                .iter()
                .find(|(_, function)| *function == policy.delay_function)
                .map_or("", |(name, _)| name),
            show(Duration::from_secs(suggested)),
            show(policy.interval),
        );
        check.error(field, message);
    }
}

/// Returns the sum of the delays before each attempt, in nanoseconds.
fn total_delay_ns(policy: &ReschedulePolicy) -> u128 {
    let delay = policy.delay.as_nanos();
    let mut left = u128::from(policy.attempts);
    if policy.delay_function == DelayFunction::Constant {
        return delay * left;
    }
    let ceiling = policy.max_delay.as_nanos();
    let (mut previous, mut current, mut total) = (0, delay, 0);
    // At most some 90 rounds: the delay grows by more than half each time, up to 2^64 ns, and
    // what remains at the ceiling is one multiplication.
    while left > 0 && current < ceiling {
        total += current;
        left -= 1;
        let next = match policy.delay_function {
            DelayFunction::Fibonacci => previous + current,
            _ => current * 2,
        };
        // Fibonacci starts with the delay twice, as in 1, 1, 2, 3, 5.
        (previous, current) = (current, next.max(delay));
    }
    total + ceiling * left
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_add_up_as_each_function_says() {
        let total = |delay_function, attempts| {
            let policy = ReschedulePolicy {
                attempts,
                interval: Duration::ZERO,
                delay: Duration::from_secs(10),
                delay_function,
                max_delay: Duration::from_secs(50),
                unlimited: false,
            };
            total_delay_ns(&policy) / 1_000_000_000
        };
        assert_eq!(total(DelayFunction::Constant, 4), 40);
        assert_eq!(total(DelayFunction::Exponential, 4), 10 + 20 + 40 + 50);
        assert_eq!(
            total(DelayFunction::Fibonacci, 6),
            10 + 10 + 20 + 30 + 50 + 50
        );
        assert_eq!(
            total(DelayFunction::Exponential, u32::MAX),
            70 + 50 * u128::from(u32::MAX - 3)
        );
    }
}
