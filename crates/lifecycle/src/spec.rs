//! Specification of the machines: the needed part of a job and its allocation, with the defaults of
//! the job type applied.

use std::collections::BTreeMap;
use std::time::Duration;

use model::job::{HealthCheck, LifecycleHook, RestartPolicy};
use model::{Allocation, DeploymentId, Job, JobType, Service, Task, TaskGroup, Timestamp};

/// Limits set by the node's operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Upper bound of a job's kill timeout.
    pub max_kill_timeout: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        // Source: Nomad 2.0's default of `max_kill_timeout`.
        Self {
            max_kill_timeout: Duration::from_secs(30),
        }
    }
}

/// Specification of an allocation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllocSpec {
    pub job_type: JobType,
    /// The group as it is in the job, without its tasks, which are in `tasks`, and without what servers alone
    /// decide by.
    pub group: TaskGroup,
    /// Name → task; never empty.
    pub tasks: BTreeMap<String, TaskSpec>,
    /// Deadline of its run, counted from its creation on the server.
    pub run_until: Option<Timestamp>,
    /// The deployment that waits for its health.
    pub deployment_id: Option<DeploymentId>,
    /// The health check; `None`: the user sets the health.
    pub health: Option<HealthSpec>,
}

/// Health check of an allocation, based on its tasks' states and on its service checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HealthSpec {
    pub min_healthy_time: Duration,
    pub healthy_deadline: Duration,
    /// The service checks have to pass, too.
    pub checks: bool,
}

/// Specification of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskSpec {
    pub role: Role,
    pub leader: bool,
    pub restart: RestartPolicy,
    /// A successful exit leads to a restart (`true`) or ends the task (`false`).
    pub restart_on_success: bool,
    /// Already bounded by [`Limits::max_kill_timeout`].
    pub kill_timeout: Duration,
    /// Empty: the driver's choice.
    pub kill_signal: String,
    pub shutdown_delay: Duration,
    pub services: Vec<Service>,
    /// The main tasks start once the checks of this prestart sidecar pass.
    pub is_awaited: bool,
}

/// Role of a task in its allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    Prestart,
    PrestartSidecar,
    Main,
    Poststart,
    PoststartSidecar,
    Poststop,
}

impl Role {
    pub fn is_sidecar(self) -> bool {
        matches!(self, Self::PrestartSidecar | Self::PoststartSidecar)
    }

    fn of(task: &Task) -> Self {
        match task.lifecycle {
            None => Self::Main,
            Some(lifecycle) => match (lifecycle.hook, lifecycle.sidecar) {
                (LifecycleHook::Prestart, false) => Self::Prestart,
                (LifecycleHook::Prestart, true) => Self::PrestartSidecar,
                (LifecycleHook::Poststart, false) => Self::Poststart,
                (LifecycleHook::Poststart, true) => Self::PoststartSidecar,
                (LifecycleHook::Poststop, _) => Self::Poststop,
            },
        }
    }
}

impl AllocSpec {
    /// Extracts the specification; `None`: `job` has no such task group.
    pub fn new(job: &Job, alloc: &Allocation, limits: Limits) -> Option<Self> {
        let mut group = job.task_group(&alloc.task_group)?.clone();
        let tasks = std::mem::take(&mut group.tasks);
        let tasks = tasks
            .iter()
            .map(|task| (task.name.clone(), TaskSpec::new(job.job_type, task, limits)))
            .collect();
        Some(Self {
            job_type: job.job_type,
            tasks,
            run_until: group
                .max_run_duration
                .map(|duration| alloc.create_time.plus(duration)),
            deployment_id: alloc.deployment_id,
            health: health(job, &group, alloc.deployment_id),
            group: for_node(group),
        })
    }

    /// Returns the longest run without contact to a server; `None`: no limit.
    pub(crate) fn stop_on_client_after(&self) -> Option<Duration> {
        self.group.disconnect?.stop_on_client_after
    }
}

/// Removes the fields that only servers use. Otherwise a change of one of them would change the node's
/// specification: after a job is scaled, its nodes would store and report each of its allocations again.
fn for_node(group: TaskGroup) -> TaskGroup {
    TaskGroup {
        count: 0,
        constraints: Vec::new(),
        affinities: Vec::new(),
        spreads: Vec::new(),
        reschedule: None,
        // The health check has been taken from these.
        update: None,
        migrate: None,
        scaling: None,
        ..group
    }
}

/// Source: Nomad's public behaviour: `update` configures the health check in a deployment, `migrate`
/// without one, so that drains know when a replacement is healthy.
fn health(job: &Job, group: &TaskGroup, deployment_id: Option<DeploymentId>) -> Option<HealthSpec> {
    if job.job_type.runs_to_end() {
        return None;
    }
    if deployment_id.is_none() {
        let migrate = group.migrate.as_ref()?;
        return Some(HealthSpec {
            min_healthy_time: migrate.min_healthy_time,
            healthy_deadline: migrate.healthy_deadline,
            checks: migrate.health_check == HealthCheck::Checks,
        });
    }
    let update = group.update?;
    match update.health_check {
        HealthCheck::Manual => None,
        HealthCheck::Checks | HealthCheck::TaskStates => Some(HealthSpec {
            min_healthy_time: update.min_healthy_time,
            healthy_deadline: update.healthy_deadline,
            checks: update.health_check == HealthCheck::Checks,
        }),
    }
}

impl TaskSpec {
    fn new(job_type: JobType, task: &Task, limits: Limits) -> Self {
        let role = Role::of(task);
        let restart_on_success = match role {
            Role::Main => !job_type.runs_to_end(),
            Role::PrestartSidecar | Role::PoststartSidecar => true,
            Role::Prestart | Role::Poststart | Role::Poststop => false,
        };
        Self {
            role,
            leader: task.leader,
            restart: task.restart,
            restart_on_success,
            kill_timeout: task.kill_timeout.min(limits.max_kill_timeout),
            kill_signal: task.kill_signal.clone(),
            shutdown_delay: task.shutdown_delay,
            services: task.services.clone(),
            is_awaited: role == Role::PrestartSidecar
                && task.lifecycle.is_some_and(|it| it.wait_for.is_some()),
        }
    }
}
