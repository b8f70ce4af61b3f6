//! Health of an allocation, derived from its tasks' states and its service checks, for its deployment
//! or for a drain that waits for its replacement.

use std::collections::BTreeMap;

use model::{DeploymentHealth, DeploymentId, TaskPhase};
use serde::{Deserialize, Serialize};

use crate::checks::{Checks, Health};
use crate::spec::{HealthSpec, Role, TaskSpec};
use crate::task::TaskRunner;
use crate::time::{Now, Uptime, written};

/// Everything that the health follows from.
pub(crate) struct HealthInputs<'a> {
    pub(crate) specs: &'a BTreeMap<String, TaskSpec>,
    pub(crate) tasks: &'a BTreeMap<String, TaskRunner>,
    pub(crate) checks: &'a Checks,
}

/// The health watch of one deployment, and its verdict.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct HealthWatch {
    /// The deployment, if any, and the deadline of the watch.
    watched: Option<(Option<DeploymentId>, Uptime)>,
    pub(crate) verdict: Option<DeploymentHealth>,
}

/// Health at one instant.
enum Sign {
    Healthy,
    /// Healthy from then on, if nothing changes.
    HealthyAt(Uptime),
    /// May still become healthy.
    NotYet,
    Unhealthy,
}

impl HealthWatch {
    /// Starts a watch for a new deployment; drops the verdict of another one.
    pub(crate) fn watch(
        &mut self,
        deployment_id: Option<DeploymentId>,
        spec: Option<HealthSpec>,
        now: Uptime,
    ) {
        let Some(spec) = spec else {
            return;
        };
        if self
            .watched
            .is_some_and(|(watched, _)| watched == deployment_id)
        {
            return;
        }
        self.verdict = self
            .verdict
            .filter(|verdict| verdict.deployment_id == deployment_id);
        self.watched = Some((deployment_id, now.plus(spec.healthy_deadline)));
    }

    /// Restarts an open watch after a reboot, because its clock is gone.
    pub(crate) fn rebase(&mut self) {
        if self.verdict.is_none() {
            self.watched = None;
        }
    }

    /// Sets the verdict if the tasks' states allow one.
    ///
    /// Returns a reason per task when the deadline has passed.
    pub(crate) fn update_verdict(
        &mut self,
        spec: Option<HealthSpec>,
        all: &HealthInputs<'_>,
        now: Now,
    ) -> Vec<(String, String)> {
        let (Some(spec), Some((deployment_id, deadline)), None) =
            (spec, self.watched, self.verdict)
        else {
            return Vec::new();
        };
        let verdict = |healthy| {
            Some(DeploymentHealth {
                healthy,
                time: now.wall,
                deployment_id,
            })
        };
        match sign(&spec, all, now.uptime) {
            Sign::Healthy => self.verdict = verdict(true),
            Sign::Unhealthy => self.verdict = verdict(false),
            Sign::HealthyAt(_) | Sign::NotYet if now.uptime >= deadline => {
                self.verdict = verdict(false);
                return reasons(&spec, all, now.uptime);
            }
            Sign::HealthyAt(_) | Sign::NotYet => {}
        }
        Vec::new()
    }

    /// Returns when [`Self::update_verdict`] may give another result without an event.
    pub(crate) fn next_deadline(
        &self,
        spec: Option<HealthSpec>,
        all: &HealthInputs<'_>,
        now: Uptime,
    ) -> Option<Uptime> {
        let (Some(spec), Some((_, deadline)), None) = (spec, self.watched, self.verdict) else {
            return None;
        };
        match sign(&spec, all, now) {
            Sign::HealthyAt(at) => Some(at.min(deadline)),
            _ => Some(deadline),
        }
    }
}

fn sign(spec: &HealthSpec, all: &HealthInputs<'_>, now: Uptime) -> Sign {
    let mut healthy_at = Uptime(0);
    let mut is_complete = true;
    for (name, task_spec) in all.specs {
        let Some(task) = all.tasks.get(name) else {
            continue;
        };
        if task.visible().failed {
            return Sign::Unhealthy;
        }
        let may_be_dead = match task_spec.role {
            Role::Poststop => continue,
            Role::Prestart | Role::Poststart => true,
            Role::Main | Role::PrestartSidecar | Role::PoststartSidecar => false,
        };
        match task.visible().phase {
            TaskPhase::Dead if may_be_dead => {}
            TaskPhase::Dead if task_spec.role == Role::Main => return Sign::Unhealthy,
            // It is about to be restarted.
            TaskPhase::Running if !task.is_served() => is_complete = false,
            TaskPhase::Running => {
                healthy_at = healthy_at.max(task.started_at().plus(spec.min_healthy_time));
            }
            TaskPhase::Dead | TaskPhase::Pending => is_complete = false,
        }
    }
    if spec.checks {
        match all.checks.health() {
            Health::PassingSince(since) => {
                healthy_at = healthy_at.max(since.plus(spec.min_healthy_time));
            }
            Health::NotPassing => is_complete = false,
        }
    }
    if !is_complete {
        Sign::NotYet
    } else if now >= healthy_at {
        Sign::Healthy
    } else {
        Sign::HealthyAt(healthy_at)
    }
}

/// Task → the reason why it kept the allocation from being healthy. A failing check of the group
/// stands at the first task.
fn reasons(spec: &HealthSpec, all: &HealthInputs<'_>, now: Uptime) -> Vec<(String, String)> {
    let mut reasons = Vec::new();
    let deadline = written(spec.healthy_deadline);
    for (name, task_spec) in all.specs {
        let Some(task) = all.tasks.get(name) else {
            continue;
        };
        let reason = match (task_spec.role, task.visible().phase) {
            (Role::Poststop, _) | (Role::Prestart | Role::Poststart, TaskPhase::Dead) => continue,
            (_, TaskPhase::Running) => {
                if now >= task.started_at().plus(spec.min_healthy_time) {
                    continue;
                }
                format!(
                    "Task not running for min_healthy_time of {} by healthy_deadline of {deadline}",
                    written(spec.min_healthy_time),
                )
            }
            _ => format!("Task not running by healthy_deadline of {deadline}"),
        };
        reasons.push((name.clone(), reason));
    }
    if spec.checks {
        let first = all.specs.keys().next();
        for (task, check) in all.checks.failing() {
            let task = task.map(str::to_owned).or_else(|| first.cloned());
            let reason =
                format!("Service check {check:?} not passing by healthy_deadline of {deadline}");
            reasons.extend(task.map(|task| (task, reason)));
        }
    }
    if reasons.is_empty() {
        // Checks that passed too late for min_healthy_time.
        let reason = format!(
            "Service checks not passing for min_healthy_time of {} by healthy_deadline of {deadline}",
            written(spec.min_healthy_time),
        );
        let first = all.specs.keys().next();
        reasons.extend(first.map(|task| (task.clone(), reason)));
    }
    reasons
}
