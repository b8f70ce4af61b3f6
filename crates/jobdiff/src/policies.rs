//! What jobs, groups and tasks have in common: wishes about nodes, and policies.

use model::job::{
    DelayFunction, DisconnectStrategy, HealthCheck, MigrateStrategy, ReconcileChoice,
    ReschedulePolicy, RestartMode, RestartPolicy, UpdateStrategy,
};
use model::{Affinity, Constraint, Spread, SpreadTarget};

use crate::shape::Shape;

pub(crate) fn constraint(constraint: &Constraint) -> Shape {
    let Constraint {
        left,
        operator,
        right,
    } = constraint;
    Shape::new("Constraint")
        .field("LTarget", left)
        .field("Operand", operator.as_str())
        .field("RTarget", right)
}

pub(crate) fn affinity(affinity: &Affinity) -> Shape {
    let Affinity {
        left,
        operator,
        right,
        weight,
    } = affinity;
    Shape::new("Affinity")
        .field("LTarget", left)
        .field("Operand", operator.as_str())
        .field("RTarget", right)
        .field("Weight", weight)
}

pub(crate) fn spread(spread: &Spread) -> Shape {
    let Spread {
        attribute,
        weight,
        targets,
    } = spread;
    Shape::new("Spread")
        .field("Attribute", attribute)
        .field("Weight", weight)
        .set(targets.iter().map(spread_target))
}

fn spread_target(target: &SpreadTarget) -> Shape {
    let SpreadTarget { value, percent } = target;
    Shape::new("SpreadTarget")
        .field("Value", value)
        .field("Percent", percent)
}

pub(crate) fn restart(policy: &RestartPolicy) -> Shape {
    let RestartPolicy {
        attempts,
        interval,
        delay,
        mode,
    } = policy;
    let mode = match mode {
        RestartMode::Delay => "delay",
        RestartMode::Fail => "fail",
    };
    Shape::new("RestartPolicy")
        .field("Attempts", attempts)
        .span("Interval", *interval)
        .span("Delay", *delay)
        .field("Mode", mode)
}

pub(crate) fn reschedule(policy: &ReschedulePolicy) -> Shape {
    let ReschedulePolicy {
        attempts,
        interval,
        delay,
        delay_function,
        max_delay,
        unlimited,
    } = policy;
    let delay_function = match delay_function {
        DelayFunction::Constant => "constant",
        DelayFunction::Exponential => "exponential",
        DelayFunction::Fibonacci => "fibonacci",
    };
    Shape::new("ReschedulePolicy")
        .field("Attempts", attempts)
        .span("Interval", *interval)
        .span("Delay", *delay)
        .field("DelayFunction", delay_function)
        .span("MaxDelay", *max_delay)
        .field("Unlimited", unlimited)
}

/// Leaves the stagger out, which has no effect any more. Source: Nomad 2.0 behaviour.
pub(crate) fn update(strategy: &UpdateStrategy) -> Shape {
    let UpdateStrategy {
        max_parallel,
        health_check: check,
        min_healthy_time,
        healthy_deadline,
        progress_deadline,
        auto_revert,
        auto_promote,
        canary,
        stagger: _,
    } = strategy;
    Shape::new("Update")
        .field("MaxParallel", max_parallel)
        .field("HealthCheck", health_check(*check))
        .span("MinHealthyTime", *min_healthy_time)
        .span("HealthyDeadline", *healthy_deadline)
        .span("ProgressDeadline", *progress_deadline)
        .field("AutoRevert", auto_revert)
        .field("AutoPromote", auto_promote)
        .field("Canary", canary)
}

pub(crate) fn migrate(strategy: &MigrateStrategy) -> Shape {
    let MigrateStrategy {
        max_parallel,
        health_check: check,
        min_healthy_time,
        healthy_deadline,
    } = strategy;
    Shape::new("Migrate")
        .field("MaxParallel", max_parallel)
        .field("HealthCheck", health_check(*check))
        .span("MinHealthyTime", *min_healthy_time)
        .span("HealthyDeadline", *healthy_deadline)
}

fn health_check(check: HealthCheck) -> &'static str {
    match check {
        HealthCheck::Checks => "checks",
        HealthCheck::TaskStates => "task_states",
        HealthCheck::Manual => "manual",
    }
}

pub(crate) fn disconnect(strategy: &DisconnectStrategy) -> Shape {
    let DisconnectStrategy {
        lost_after,
        stop_on_client_after,
        replace,
        reconcile,
    } = strategy;
    let reconcile = match reconcile {
        ReconcileChoice::BestScore => "best_score",
        ReconcileChoice::KeepOriginal => "keep_original",
        ReconcileChoice::KeepReplacement => "keep_replacement",
        ReconcileChoice::LongestRunning => "longest_running",
    };
    let stop_after = stop_on_client_after.map(|span| span.as_nanos());
    Shape::new("Disconnect")
        .optional("LostAfter", lost_after.map(|span| span.as_nanos()))
        .optional("StopOnClientAfter", stop_after)
        .field("Replace", replace)
        .field("Reconcile", reconcile)
}
