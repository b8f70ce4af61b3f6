//! Policies of a group: restarts, rescheduling, updates, drains and disconnects.

use model::job;

use super::to_message;
use crate::{DisconnectStrategy, MigrateStrategy, ReschedulePolicy, RestartPolicy, UpdateStrategy};

impl From<&job::RestartPolicy> for RestartPolicy {
    fn from(policy: &job::RestartPolicy) -> Self {
        let mode = match policy.mode {
            job::RestartMode::Delay => "delay",
            job::RestartMode::Fail => "fail",
        };
        Self {
            attempts: Some(i64::from(policy.attempts)),
            interval: to_message(policy.interval),
            delay: to_message(policy.delay),
            mode: Some(mode.to_owned()),
            render_templates: Some(policy.render_templates),
        }
    }
}

impl From<&job::ReschedulePolicy> for ReschedulePolicy {
    fn from(policy: &job::ReschedulePolicy) -> Self {
        let function = match policy.delay_function {
            job::DelayFunction::Constant => "constant",
            job::DelayFunction::Exponential => "exponential",
            job::DelayFunction::Fibonacci => "fibonacci",
        };
        Self {
            attempts: Some(i64::from(policy.attempts)),
            interval: to_message(policy.interval),
            delay: to_message(policy.delay),
            delay_function: Some(function.to_owned()),
            max_delay: to_message(policy.max_delay),
            unlimited: Some(policy.unlimited),
        }
    }
}

fn health_check(check: job::HealthCheck) -> String {
    match check {
        job::HealthCheck::Checks => "checks",
        job::HealthCheck::TaskStates => "task_states",
        job::HealthCheck::Manual => "manual",
    }
    .to_owned()
}

impl From<&job::UpdateStrategy> for UpdateStrategy {
    fn from(update: &job::UpdateStrategy) -> Self {
        Self {
            max_parallel: Some(i64::from(update.max_parallel)),
            health_check: Some(health_check(update.health_check)),
            min_healthy_time: to_message(update.min_healthy_time),
            healthy_deadline: to_message(update.healthy_deadline),
            progress_deadline: to_message(update.progress_deadline),
            auto_revert: Some(update.auto_revert),
            auto_promote: Some(update.auto_promote),
            canary: Some(i64::from(update.canary)),
            stagger: to_message(update.stagger),
        }
    }
}

impl From<&job::MigrateStrategy> for MigrateStrategy {
    fn from(migrate: &job::MigrateStrategy) -> Self {
        Self {
            max_parallel: Some(i64::from(migrate.max_parallel)),
            health_check: Some(health_check(migrate.health_check)),
            min_healthy_time: to_message(migrate.min_healthy_time),
            healthy_deadline: to_message(migrate.healthy_deadline),
        }
    }
}

impl From<&job::DisconnectStrategy> for DisconnectStrategy {
    fn from(disconnect: &job::DisconnectStrategy) -> Self {
        let reconcile = match disconnect.reconcile {
            job::ReconcileChoice::BestScore => "best_score",
            job::ReconcileChoice::KeepOriginal => "keep_original",
            job::ReconcileChoice::KeepReplacement => "keep_replacement",
            job::ReconcileChoice::LongestRunning => "longest_running",
        };
        Self {
            lost_after: disconnect.lost_after.and_then(to_message),
            stop_on_client_after: disconnect.stop_on_client_after.and_then(to_message),
            replace: Some(disconnect.replace),
            reconcile: Some(reconcile.to_owned()),
        }
    }
}
