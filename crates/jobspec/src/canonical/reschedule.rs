//! The reschedule policy: when and how often a failed allocation is placed again.

use std::time::Duration;

use duration::show;
use model::job::{DelayFunction, JobType, ReschedulePolicy};

use super::inherited::Inherited;
use super::job_types::{NO_RESCHEDULE, has_reschedule};
use super::validation::{Path, Validation};

/// Source: Nomad's bounds.
const MIN_DELAY: Duration = Duration::from_secs(5);
const MIN_INTERVAL: Duration = Duration::from_secs(15);

const FUNCTIONS: [(&str, DelayFunction); 3] = [
    ("constant", DelayFunction::Constant),
    ("exponential", DelayFunction::Exponential),
    ("fibonacci", DelayFunction::Fibonacci),
];

/// Returns the group's policy: its own attributes over the job's, over the defaults of the type;
/// `None`: it has no policy, so a failure alone leads to no replacement.
pub(super) fn reschedule(
    check: &mut Validation,
    path: &Path,
    spec: Option<&job_fields::ReschedulePolicy>,
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

/// Tells whether a policy sets `attempts` (other than 0) or `unlimited`. System and sysbatch jobs have
/// no default policy, so one of theirs has to set either.
pub(super) fn grants_attempts(spec: &job_fields::ReschedulePolicy) -> bool {
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
    group: Option<&job_fields::ReschedulePolicy>,
    job: Option<&job_fields::ReschedulePolicy>,
) -> job_fields::ReschedulePolicy {
    let group = group.cloned().unwrap_or_default();
    let job = job.cloned().unwrap_or_default();
    job_fields::ReschedulePolicy {
        attempts: group.attempts.or(job.attempts),
        interval: group.interval.or(job.interval),
        delay: group.delay.or(job.delay),
        delay_function: group.delay_function.or(job.delay_function),
        max_delay: group.max_delay.or(job.max_delay),
        unlimited: group.unlimited.or(job.unlimited),
    }
}

fn read(
    check: &mut Validation,
    path: &Path,
    spec: &job_fields::ReschedulePolicy,
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

fn combination(check: &mut Validation, path: &Path, policy: &ReschedulePolicy) {
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
fn attempts_fit(check: &mut Validation, path: &Path, policy: &ReschedulePolicy) {
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
    let needed = policy.total_delay_ns();
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
