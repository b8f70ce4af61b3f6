//! State machine of one allocation: owns a machine per task and makes the decisions across tasks.

mod apply;
mod consequences;
mod restart;
mod tasks;
mod view;

pub use restart::{NoProcess, RestartRefusal};

use std::collections::BTreeMap;

use model::{AllocClient, ServiceHealth, ServiceOwner, Timestamp};
use rand::Rng;
use serde::{Deserialize, Serialize};

use crate::checks::{CheckKey, Checks, Watched};
use crate::effect::Effect;
use crate::event::Event;
use crate::gates::Stage;
use crate::health::{HealthInputs, HealthWatch};
use crate::kill::AllocKill;
use crate::spec::AllocSpec;
use crate::task::TaskRunner;
use crate::time::{Now, Uptime};

/// The boot of the stored state, relative to the current one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Boot {
    Same,
    /// The machine was rebooted: no earlier process is left, and the uptime restarted.
    New,
}

/// One allocation on this node.
#[derive(Clone, Debug)]
pub struct AllocRunner {
    spec: AllocSpec,
    state: AllocState,
    checks: Checks,
    /// A server has answered since the agent started.
    is_contacted: bool,
    /// A visible change was made, which the end of the step reports.
    is_changed: bool,
}

/// The stored state, from which a restarted agent continues.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AllocState {
    stage: Stage,
    prerun: Prerun,
    tasks: BTreeMap<String, TaskRunner>,
    /// The awaited sidecars that the main tasks' events name.
    #[serde(default)]
    announced: Vec<String>,
    kill: Option<AllocKill>,
    health: HealthWatch,
    /// Deadline of `max_run_duration`.
    run_deadline: Option<Uptime>,
    /// Deadline of `stop_on_client_after`.
    contact_deadline: Option<Uptime>,
    /// No task runs, and none will.
    is_ended: bool,
    modify_time: Timestamp,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Prerun {
    #[default]
    Pending,
    /// Done before the agent was restarted; to be checked again.
    Again,
    Done,
    Failed(String),
}

impl AllocState {
    /// Returns whether the directories were created, so that the wait for predecessors before
    /// [`Event::Begin`] is over.
    pub fn has_begun(&self) -> bool {
        self.prerun != Prerun::Pending
    }
}

impl AllocRunner {
    /// Creates the machine of a newly assigned allocation.
    pub fn new(spec: AllocSpec, now: Now) -> Self {
        let tasks = spec
            .tasks
            .keys()
            .map(|name| (name.clone(), TaskRunner::new(now)))
            .collect();
        let state = AllocState {
            stage: Stage::default(),
            prerun: Prerun::default(),
            tasks,
            announced: Vec::new(),
            kill: None,
            health: HealthWatch::default(),
            run_deadline: None,
            contact_deadline: None,
            is_ended: false,
            modify_time: now.wall,
        };
        Self {
            spec,
            state,
            checks: Checks::default(),
            is_contacted: true,
            is_changed: true,
        }
    }

    /// Creates the machine of an allocation from the state of an earlier run of the agent.
    ///
    /// Its [`Event::Begin`] recovers every process that may exist.
    pub fn restore(spec: AllocSpec, state: AllocState, now: Now, boot: Boot) -> Self {
        let mut runner = Self {
            spec,
            state,
            checks: Checks::default(),
            is_contacted: false,
            is_changed: false,
        };
        if boot == Boot::New {
            runner.state.health.rebase();
            runner.state.contact_deadline = None;
            if let Some(kill) = &mut runner.state.kill {
                kill.delay_until = kill.delay_until.map(|_| now.uptime);
            }
        }
        for task in runner.state.tasks.values_mut() {
            task.restore(now.uptime, boot);
        }
        if runner.state.prerun == Prerun::Done {
            runner.state.prerun = Prerun::Again;
        }
        runner
    }

    /// Applies one event and returns the effects.
    ///
    /// A step without effects changed nothing that a restarted agent needs, so its state need not be
    /// stored.
    pub fn step(&mut self, now: Now, event: Event, rng: &mut dyn Rng) -> Vec<Effect> {
        let mut effects = Vec::new();
        self.apply(now, event, &mut effects, rng);
        self.apply_consequences(now, &mut effects, rng);
        self.check_invariants();
        effects
    }

    /// Returns when the loop must send [`Event::Tick`]; `None`: there is no deadline.
    pub fn next_deadline(&self, now: Now) -> Option<Uptime> {
        if self.state.is_ended {
            return None;
        }
        let tasks = self
            .state
            .tasks
            .values()
            .filter_map(TaskRunner::next_deadline)
            .min();
        let delay = self.state.kill.as_ref().and_then(|kill| kill.delay_until);
        let run = self.state.run_deadline.filter(|_| !self.has_run_too_long());
        let contact = self
            .state
            .contact_deadline
            .filter(|_| !self.is_killed_for_good());
        let health = if self.is_health_watched() {
            let all = self.all();
            self.state
                .health
                .next_deadline(self.spec.health, &all, now.uptime)
        } else {
            None
        };
        let restart = self.checks.next_deadline(|task| self.started_at(task));
        [tasks, delay, run, contact, health, restart]
            .into_iter()
            .flatten()
            .min()
    }

    /// Returns the state, to be stored before the effects of a step are performed.
    pub fn state(&self) -> &AllocState {
        &self.state
    }

    pub fn spec(&self) -> &AllocSpec {
        &self.spec
    }

    /// Returns whether a task has ended and starts again only on a request for the whole allocation.
    pub fn is_dead(&self, task: &str) -> bool {
        self.state.tasks.get(task).is_none_or(TaskRunner::is_dead)
    }

    /// Returns the state to report.
    pub fn client(&self) -> AllocClient {
        let (status, description) = self.status();
        let task_states = self
            .state
            .tasks
            .iter()
            .map(|(name, task)| (name.clone(), task.visible().clone()))
            .collect();
        AllocClient {
            status,
            description,
            task_states,
            health: self.health(status),
            // The loop adds them: their addresses are facts of the node.
            services: Vec::new(),
            network: None,
            // The queue of reports numbers it.
            report: 0,
            modify_time: self.state.modify_time,
        }
    }

    /// Returns the result of the checks of a registered service, given its owner and position.
    pub fn service_health(&self, owner: &ServiceOwner, service: usize) -> ServiceHealth {
        self.checks.service_health(owner, service)
    }

    /// Returns the service checks that the loop has to run, with their states.
    pub fn checks(&self) -> impl Iterator<Item = (&CheckKey, &Watched)> {
        self.checks.iter()
    }

    /// Returns the newest start of a task, or without one of all tasks.
    fn started_at(&self, task: Option<&str>) -> Uptime {
        let named = |name: &str| task.is_none_or(|task| task == name);
        let tasks = self.state.tasks.iter().filter(|(name, _)| named(name));
        let starts = tasks.map(|(_, task)| task.started_at());
        starts.max().unwrap_or_default()
    }

    fn all(&self) -> HealthInputs<'_> {
        HealthInputs {
            specs: &self.spec.tasks,
            tasks: &self.state.tasks,
            checks: &self.checks,
        }
    }

    /// Returns whether no task runs, and none will.
    pub fn is_ended(&self) -> bool {
        self.state.is_ended
    }

    /// Returns the end of the last task; `None` while a task runs or will.
    pub fn ended_at(&self) -> Option<Timestamp> {
        if !self.state.is_ended {
            return None;
        }
        let tasks = self.state.tasks.values();
        let ends = tasks.map(|task| task.visible().finished_at);
        Some(ends.max().unwrap_or(self.state.modify_time))
    }

    /// Returns, for each task that is not dead, the attempt that may have a process or starts next.
    /// Driver records of other attempts are obsolete.
    pub fn expected_attempts(&self) -> impl Iterator<Item = (&str, u32)> {
        let alive = self.state.tasks.iter().filter(|(_, task)| !task.is_dead());
        alive.map(|(name, task)| (name.as_str(), task.expected_attempt()))
    }

    fn check_invariants(&self) {
        let is_any_alive = self.state.tasks.values().any(|task| !task.is_dead());
        debug_assert_eq!(self.state.is_ended, !is_any_alive, "ended and alive");
        debug_assert!(
            !self.state.is_ended || self.next_deadline(Now::default()).is_none(),
            "an ended allocation has no deadline"
        );
    }
}

/// Inputs and outputs of a step.
struct Step<'a> {
    now: Now,
    effects: &'a mut Vec<Effect>,
    rng: &'a mut dyn Rng,
}
