//! The restart policy: restarts of an ended task on the same node.

use std::time::Duration;

use duration::show;
use model::job::{JobType, RestartMode, RestartPolicy};

use super::inherited::Inherited;
use super::validation::{Path, Validation};

/// Source: Nomad's defaults and bounds.
const DEFAULT_DELAY: Duration = Duration::from_secs(15);
const MIN_INTERVAL: Duration = Duration::from_secs(5);

const MODES: [(&str, RestartMode); 2] =
    [("delay", RestartMode::Delay), ("fail", RestartMode::Fail)];

/// Returns the group's policy: its own attributes over the defaults of the job's type.
pub(super) fn group(
    check: &mut Validation,
    path: &Path,
    spec: Option<&job_fields::RestartPolicy>,
    inherited: &Inherited<'_>,
) -> RestartPolicy {
    let attempts = match inherited.job_type {
        JobType::Service | JobType::System => 2,
        JobType::Batch | JobType::Sysbatch => 3,
    };
    let defaults = RestartPolicy {
        attempts,
        interval: inherited.restart_interval(),
        delay: DEFAULT_DELAY,
        mode: RestartMode::Fail,
        render_templates: false,
    };
    let errors_before = check.error_count();
    let policy = merge(check, path, spec, &defaults);
    if spec.is_some() && check.error_count() == errors_before {
        restarts_fit(check, &path.block("restart"), &policy);
    }
    policy
}

/// Returns the task's policy: its own attributes over the group's.
///
/// Whether its restarts fit into the interval is not checked, as in Nomad: a task whose restarts do
/// not fit restarts without end.
pub(super) fn task(
    check: &mut Validation,
    path: &Path,
    spec: Option<&job_fields::RestartPolicy>,
    group: &RestartPolicy,
) -> RestartPolicy {
    merge(check, path, spec, group)
}

fn merge(
    check: &mut Validation,
    path: &Path,
    spec: Option<&job_fields::RestartPolicy>,
    below: &RestartPolicy,
) -> RestartPolicy {
    let Some(spec) = spec else { return *below };
    let path = path.block("restart");
    let errors_before = check.error_count();
    let policy = RestartPolicy {
        attempts: check.number(path.field("attempts"), spec.attempts, below.attempts),
        interval: check.duration(
            path.field("interval"),
            spec.interval.as_ref(),
            below.interval,
        ),
        delay: check.duration(path.field("delay"), spec.delay.as_ref(), below.delay),
        mode: check.choice(
            path.field("mode"),
            spec.mode.as_deref(),
            &MODES,
            below.mode,
            |mode| format!("Unsupported restart mode: {mode:?}: use fail or delay"),
        ),
        render_templates: spec.render_templates.unwrap_or(below.render_templates),
    };
    // How the attributes go together says nothing when one of them could not be read.
    if check.error_count() == errors_before {
        combination(check, &path, &policy);
    }
    policy
}

fn combination(check: &mut Validation, path: &Path, policy: &RestartPolicy) {
    if policy.attempts == 0 {
        if policy.mode == RestartMode::Delay {
            let message = "Restart policy \"delay\" with 0 attempts is ambiguous: use mode = \
                           \"fail\" to never restart, or attempts = 1 or more";
            check.error(path.field("mode"), message);
        }
        return;
    }
    if policy.interval < MIN_INTERVAL {
        let message = format!(
            "Interval can not be less than {}; got {}: write a longer one",
            show(MIN_INTERVAL),
            show(policy.interval),
        );
        check.error(path.field("interval"), message);
    }
}

/// Checks that the restarts of an interval, with the delay before each, fit into it.
fn restarts_fit(check: &mut Validation, path: &Path, policy: &RestartPolicy) {
    let needed = policy.delay.as_nanos() * u128::from(policy.attempts);
    if needed > policy.interval.as_nanos() {
        let message = format!(
            "the tasks cannot restart {} times in an interval of {} with a delay of {}: \
             lengthen the interval, or lower attempts or the delay",
            policy.attempts,
            show(policy.interval),
            show(policy.delay),
        );
        check.error(path.field("interval"), message);
    }
}
