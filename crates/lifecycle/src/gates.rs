//! Stages of an allocation, which gate the start of its tasks.
//!
//! A stage is not entered again, except by "restart all", so a main task restarts without waiting
//! for a prestart sidecar that restarts at the same time.

use std::collections::BTreeMap;

use model::TaskPhase;
use serde::{Deserialize, Serialize};

use crate::checks::Checks;
use crate::spec::{Role, TaskSpec};
use crate::task::TaskRunner;

/// Stage of an allocation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Stage {
    /// Prestart tasks run. Ends when the ephemeral ones have succeeded, the sidecars run, and the awaited
    /// sidecars are healthy.
    #[default]
    Prestart,
    /// Main tasks may start. Ends when none is pending.
    Main,
    /// Poststart tasks may start. Ends when the ephemeral ones have ended.
    Poststart,
    /// Every task has started; tasks may restart.
    #[serde(rename = "settled")]
    AllStarted,
    /// All other tasks are dead.
    Poststop,
}

type Tasks = BTreeMap<String, TaskRunner>;
type Specs = BTreeMap<String, TaskSpec>;

impl Stage {
    /// Returns whether a task of this role may start or restart.
    pub(crate) fn is_open(self, role: Role) -> bool {
        match role {
            Role::Prestart => self == Self::Prestart,
            Role::PrestartSidecar => self < Self::Poststop,
            Role::Main => self > Self::Prestart && self < Self::Poststop,
            Role::Poststart => self == Self::Poststart,
            Role::PoststartSidecar => matches!(self, Self::Poststart | Self::AllStarted),
            Role::Poststop => self == Self::Poststop,
        }
    }

    /// Returns the stage for the tasks' states, never an earlier one.
    pub(crate) fn advanced(self, specs: &Specs, tasks: &Tasks, checks: &Checks) -> Self {
        if all(
            specs,
            tasks,
            |role| role != Role::Poststop,
            TaskRunner::is_dead,
        ) {
            return Self::Poststop;
        }
        let mut stage = self;
        if stage == Self::Prestart
            && all(
                specs,
                tasks,
                |role| role == Role::Prestart,
                TaskRunner::is_successful,
            )
            && all(
                specs,
                tasks,
                |role| role == Role::PrestartSidecar,
                TaskRunner::is_running,
            )
            && awaited(specs, tasks, checks).next().is_none()
        {
            stage = Self::Main;
        }
        if stage == Self::Main
            && all(
                specs,
                tasks,
                |role| role == Role::Main,
                |task| task.visible().phase != TaskPhase::Pending,
            )
        {
            stage = Self::Poststart;
        }
        if stage == Self::Poststart
            && all(
                specs,
                tasks,
                |role| role == Role::Poststart,
                TaskRunner::is_dead,
            )
        {
            stage = Self::AllStarted;
        }
        stage
    }
}

/// Returns the sidecars whose checks have to pass before the main tasks start, and do not.
///
/// A sidecar that is being restarted is not healthy, whatever its checks last said.
pub(crate) fn awaited<'a>(
    specs: &'a Specs,
    tasks: &'a Tasks,
    checks: &'a Checks,
) -> impl Iterator<Item = &'a str> {
    let awaited = specs.iter().filter(|(_, spec)| spec.is_awaited);
    let unhealthy = awaited.filter(|(name, _)| {
        tasks
            .get(*name)
            .is_some_and(|task| !(task.is_served() && checks.task_passes(name, task.started_at())))
    });
    unhealthy.map(|(name, _)| name.as_str())
}

/// Returns whether every task with a `wanted` role `holds`.
pub(crate) fn all(
    specs: &Specs,
    tasks: &Tasks,
    wanted: impl Fn(Role) -> bool,
    holds: impl Fn(&TaskRunner) -> bool,
) -> bool {
    specs
        .iter()
        .filter(|(_, spec)| wanted(spec.role))
        .all(|(name, _)| tasks.get(name).is_none_or(&holds))
}
