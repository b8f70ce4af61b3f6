//! Policies of a task group: restarts, replacements, updates, migrations and disconnects.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::time::duration_ns;

/// Restarts on the same node after a task fails.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RestartPolicy {
    pub attempts: u32,
    #[serde(with = "duration_ns")]
    pub interval: Duration,
    #[serde(with = "duration_ns")]
    pub delay: Duration,
    pub mode: RestartMode,
    /// Asks for what each start of a task does anyway: it renders the templates.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub render_templates: bool,
}

/// The reaction to the last attempt of an interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RestartMode {
    /// Wait for the next interval.
    Delay,
    /// Give up: the task has failed.
    #[default]
    Fail,
}

/// Replacements of a failed allocation: delays and attempts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReschedulePolicy {
    pub attempts: u32,
    #[serde(with = "duration_ns")]
    pub interval: Duration,
    #[serde(with = "duration_ns")]
    pub delay: Duration,
    pub delay_function: DelayFunction,
    #[serde(with = "duration_ns")]
    pub max_delay: Duration,
    pub unlimited: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DelayFunction {
    Constant,
    Exponential,
    Fibonacci,
}

/// Replacement of a group's old version by the new one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UpdateStrategy {
    /// Number replaced at once; 0: all, and no deployment.
    pub max_parallel: u32,
    pub health_check: HealthCheck,
    #[serde(with = "duration_ns")]
    pub min_healthy_time: Duration,
    #[serde(with = "duration_ns")]
    pub healthy_deadline: Duration,
    /// Zero: none.
    #[serde(with = "duration_ns")]
    pub progress_deadline: Duration,
    pub auto_revert: bool,
    pub auto_promote: bool,
    pub canary: u32,
    #[serde(with = "duration_ns")]
    pub stagger: Duration,
}

/// The source of an allocation's health.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HealthCheck {
    Checks,
    TaskStates,
    Manual,
}

/// Migration of a group's allocations from a draining node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MigrateStrategy {
    pub max_parallel: u32,
    pub health_check: HealthCheck,
    #[serde(with = "duration_ns")]
    pub min_healthy_time: Duration,
    #[serde(with = "duration_ns")]
    pub healthy_deadline: Duration,
}

/// Treatment of allocations on a disconnected node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DisconnectStrategy {
    #[serde(with = "duration_ns::option")]
    pub lost_after: Option<Duration>,
    #[serde(with = "duration_ns::option")]
    pub stop_on_client_after: Option<Duration>,
    pub replace: bool,
    pub reconcile: ReconcileChoice,
}

/// Choice between a replaced allocation that reconnects and its replacement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReconcileChoice {
    BestScore,
    KeepOriginal,
    KeepReplacement,
    LongestRunning,
}
