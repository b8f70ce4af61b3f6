//! The machine of one allocation: it owns a machine per task and decides what concerns several.

mod apply;
mod settle;
mod view;

use std::collections::BTreeMap;

use model::{AllocClient, Timestamp};
use rand::Rng;
use serde::{Deserialize, Serialize};

use crate::effect::Effect;
use crate::event::Event;
use crate::gates::Stage;
use crate::health::HealthWatch;
use crate::kill::AllocKill;
use crate::spec::AllocSpec;
use crate::task::{Context, TaskRunner};
use crate::time::{Now, Uptime};

/// Whether the machine booted since the state was stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Boot {
    Same,
    /// No process of then is left, and the uptime began anew.
    New,
}

/// One allocation on this node.
#[derive(Clone, Debug)]
pub struct AllocRunner {
    spec: AllocSpec,
    state: AllocState,
    /// Whether a server has been heard since the agent started.
    is_contacted: bool,
    /// Set with every change that users can see, until the step's end reports it.
    is_changed: bool,
}

/// What has to be stored to go on after a restart of the agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AllocState {
    stage: Stage,
    prerun: Prerun,
    tasks: BTreeMap<String, TaskRunner>,
    kill: Option<AllocKill>,
    health: HealthWatch,
    /// When it will have run for long enough.
    run_deadline: Option<Uptime>,
    /// When it will have been without a server for too long.
    contact_deadline: Option<Uptime>,
    /// Set once it has ended: nothing of it runs, and nothing will.
    is_ended: bool,
    modify_time: Timestamp,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Prerun {
    #[default]
    Pending,
    /// Was done before the agent was restarted, and is looked at again.
    Again,
    Done,
    Failed(String),
}

impl AllocState {
    /// Tells whether it has got as far as its directories, so that whatever it had to wait for
    /// before its [`Event::Begin`] is over.
    pub fn has_begun(&self) -> bool {
        self.prerun != Prerun::Pending
    }
}

impl AllocRunner {
    /// Makes the machine of an allocation that a server has just handed over.
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
            is_contacted: true,
            is_changed: true,
        }
    }

    /// Makes the machine of an allocation whose state was stored by an earlier run of the agent.
    ///
    /// Its [`Event::Begin`] asks the driver for every process that may exist.
    pub fn restore(spec: AllocSpec, state: AllocState, now: Now, boot: Boot) -> Self {
        let mut runner = Self {
            spec,
            state,
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

    /// Records one event and returns everything that follows from it.
    ///
    /// A step that returns nothing changed nothing that a restart of the agent would miss, so its
    /// state need not be stored.
    pub fn step(&mut self, now: Now, event: Event, rng: &mut dyn Rng) -> Vec<Effect> {
        let mut effects = Vec::new();
        self.apply(now, event, &mut effects, rng);
        self.settle(now, &mut effects, rng);
        self.check_invariants();
        effects
    }

    /// When the loop must send [`Event::Tick`]; `None` while only events can change anything.
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
        let health = if self.is_judged() {
            self.state.health.next_deadline(
                self.spec.health,
                &self.spec.tasks,
                &self.state.tasks,
                now.uptime,
            )
        } else {
            None
        };
        [tasks, delay, run, contact, health]
            .into_iter()
            .flatten()
            .min()
    }

    /// What to store before the effects of a step are performed.
    pub fn state(&self) -> &AllocState {
        &self.state
    }

    pub fn spec(&self) -> &AllocSpec {
        &self.spec
    }

    /// What servers are to know.
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
            // Whoever tells it says which one it is.
            report: 0,
            modify_time: self.state.modify_time,
        }
    }

    /// Tells whether nothing of it runs, and nothing will.
    pub fn is_ended(&self) -> bool {
        self.state.is_ended
    }

    /// Returns, for each task that is not dead, the attempt that may have a process, or that will
    /// be started next. What is kept of any other attempt is of no use.
    pub fn expected_attempts(&self) -> impl Iterator<Item = (&str, u32)> {
        let alive = self.state.tasks.iter().filter(|(_, task)| !task.is_dead());
        alive.map(|(name, task)| (name.as_str(), task.expected_attempt()))
    }

    /// Passes an answer on, unless it is about an attempt that is over.
    fn answer(
        &mut self,
        turn: &mut Turn<'_>,
        name: &str,
        attempt: u32,
        then: impl FnOnce(&mut TaskRunner, &mut Context<'_>),
    ) {
        if self
            .state
            .tasks
            .get(name)
            .is_some_and(|task| task.attempt() == attempt)
        {
            self.with_task(turn, name, then);
        }
    }

    fn with_task(
        &mut self,
        turn: &mut Turn<'_>,
        name: &str,
        then: impl FnOnce(&mut TaskRunner, &mut Context<'_>),
    ) {
        let (Some(task), Some(spec)) = (self.state.tasks.get_mut(name), self.spec.tasks.get(name))
        else {
            return;
        };
        let mut cx = Context {
            now: turn.now,
            name,
            spec,
            effects: turn.effects,
            rng: turn.rng,
        };
        then(task, &mut cx);
    }

    fn each_task(
        &mut self,
        turn: &mut Turn<'_>,
        mut then: impl FnMut(&mut TaskRunner, &mut Context<'_>),
    ) {
        for (name, task) in &mut self.state.tasks {
            let Some(spec) = self.spec.tasks.get(name) else {
                continue;
            };
            let mut cx = Context {
                now: turn.now,
                name,
                spec,
                effects: turn.effects,
                rng: turn.rng,
            };
            then(task, &mut cx);
        }
    }

    fn check_invariants(&self) {
        let is_any_alive = self.state.tasks.values().any(|task| !task.is_dead());
        debug_assert_eq!(self.state.is_ended, !is_any_alive, "ended and alive");
        debug_assert!(
            !self.state.is_ended || self.next_deadline(Now::default()).is_none(),
            "what has ended waits for nothing"
        );
    }
}

/// What a step has at hand besides the machine itself.
struct Turn<'a> {
    now: Now,
    effects: &'a mut Vec<Effect>,
    rng: &'a mut dyn Rng,
}
