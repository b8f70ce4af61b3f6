//! Scripts against the machine of an allocation. Only [`Play`] knows its API.

mod awaiting;
mod checks;
mod health;
mod killing;
mod property;
mod restarting;
mod restoring;
mod services;
mod starting;
mod timing;

use std::collections::BTreeMap;
use std::time::Duration;

use model::job::{DisconnectStrategy, ReconcileChoice, RestartMode, RestartPolicy};
use model::{ClientStatus, DeploymentId, ExitResult, JobType, TaskGroup, TaskPhase, Timestamp};
use rand::SeedableRng;
use rand::rngs::StdRng;

use crate::{
    AllocRunner, AllocSpec, Boot, Effect, Event, HealthSpec, Now, Role, StartFailure, StartStep,
    TaskSpec, Uptime,
};

/// The uptime at which every script begins.
const UPTIME_START: Duration = Duration::from_secs(1_000);
/// The wall time at which every script begins.
const WALL_START: Timestamp = Timestamp(1_700_000_000_000_000_000);

pub(crate) fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

pub(crate) fn service() -> AllocSpec {
    alloc(JobType::Service)
}

pub(crate) fn batch() -> AllocSpec {
    alloc(JobType::Batch)
}

pub(crate) fn alloc(job_type: JobType) -> AllocSpec {
    AllocSpec {
        job_type,
        group: TaskGroup::default(),
        tasks: BTreeMap::new(),
        run_until: None,
        deployment_id: None,
        health: None,
    }
}

impl AllocSpec {
    fn with(mut self, name: &str, role: Role) -> Self {
        let restart_on_success = match role {
            Role::Main => !self.job_type.runs_to_end(),
            Role::PrestartSidecar | Role::PoststartSidecar => true,
            Role::Prestart | Role::Poststart | Role::Poststop => false,
        };
        let task = TaskSpec {
            role,
            leader: false,
            restart: RestartPolicy {
                attempts: 2,
                interval: seconds(1800),
                delay: seconds(15),
                mode: RestartMode::Fail,
                render_templates: false,
            },
            restart_on_success,
            kill_timeout: seconds(5),
            kill_signal: String::new(),
            shutdown_delay: Duration::ZERO,
            services: Vec::new(),
            is_awaited: false,
        };
        self.tasks.insert(name.to_owned(), task);
        self
    }

    fn edit(mut self, name: &str, edit: impl FnOnce(&mut TaskSpec)) -> Self {
        edit(self.tasks.get_mut(name).unwrap());
        self
    }

    /// Sets the group's shutdown delay.
    fn with_delay(mut self, delay: Duration) -> Self {
        self.group.shutdown_delay = delay;
        self
    }

    fn without_contact_for(mut self, limit: u64) -> Self {
        self.group.disconnect = Some(DisconnectStrategy {
            stop_on_client_after: Some(seconds(limit)),
            lost_after: None,
            replace: true,
            reconcile: ReconcileChoice::BestScore,
        });
        self
    }

    fn no_restarts(mut self) -> Self {
        self.tasks
            .values_mut()
            .for_each(|task| task.restart.attempts = 0);
        self
    }

    fn with_health(mut self, min_healthy: u64, deadline: u64) -> Self {
        self.deployment_id = Some(DeploymentId::from_random(1));
        self.health = Some(HealthSpec {
            min_healthy_time: seconds(min_healthy),
            healthy_deadline: seconds(deadline),
            checks: true,
        });
        self
    }
}

/// One machine, its clocks, and its effects.
pub(crate) struct Play {
    pub(crate) runner: AllocRunner,
    rng: StdRng,
    now: Now,
}

impl Play {
    /// A started machine with its directories.
    pub(crate) fn begun(spec: AllocSpec) -> (Self, Vec<String>) {
        let mut play = Self::new(spec);
        play.send(Event::Begin);
        let effects = play.send(Event::PrerunDone(Ok(())));
        (play, effects)
    }

    pub(crate) fn new(spec: AllocSpec) -> Self {
        let now = Now {
            uptime: Uptime::default().plus(UPTIME_START),
            wall: WALL_START,
        };
        Self {
            runner: AllocRunner::new(spec, now),
            rng: StdRng::seed_from_u64(1),
            now,
        }
    }

    /// A machine whose only task, or all of whose ungated tasks, run.
    pub(crate) fn running(spec: AllocSpec) -> Self {
        let (mut play, effects) = Self::begun(spec);
        for effect in effects {
            if let Some(rest) = effect.strip_prefix("start ") {
                let (task, attempt) = rest.split_once(' ').unwrap();
                play.started(task, attempt.parse().unwrap());
            }
        }
        play
    }

    /// Stores the state, as the loop does, and reads it back in a new process.
    pub(crate) fn restarted(self, boot: Boot) -> Self {
        let stored = serde_json::to_string(self.runner.state()).unwrap();
        let state = serde_json::from_str(&stored).unwrap();
        let mut now = self.now;
        if boot == Boot::New {
            now.uptime = Uptime::default().plus(seconds(10));
        }
        let runner = AllocRunner::restore(self.runner.spec().clone(), state, now, boot);
        Self {
            runner,
            rng: self.rng,
            now,
        }
    }

    pub(crate) fn send(&mut self, event: Event) -> Vec<String> {
        let effects = self.runner.step(self.now, event, &mut self.rng);
        let mut lines: Vec<String> = effects.iter().filter_map(line).collect();
        lines.sort();
        lines
    }

    /// Lets time pass, ticking at each deadline on the way.
    pub(crate) fn pass(&mut self, duration: Duration) -> Vec<String> {
        let end = self.now.uptime.plus(duration);
        let mut lines = Vec::new();
        while let Some(deadline) = self.runner.next_deadline(self.now).filter(|at| *at <= end) {
            self.jump(deadline.since(self.now.uptime));
            let before = self.now.uptime;
            lines.extend(self.send(Event::Tick));
            let next = self.runner.next_deadline(self.now);
            assert!(
                next.is_none_or(|next| next > before),
                "a tick must settle its deadline"
            );
        }
        self.jump(end.since(self.now.uptime));
        lines
    }

    /// Moves both clocks without a tick.
    pub(crate) fn jump(&mut self, duration: Duration) {
        self.now.uptime = self.now.uptime.plus(duration);
        self.now.wall = self.now.wall.plus(duration);
    }

    /// Sets the wall clock.
    pub(crate) fn set_wall(&mut self, wall: Timestamp) {
        self.now.wall = wall;
    }

    pub(crate) fn wall(&self) -> Timestamp {
        self.now.wall
    }

    pub(crate) fn started(&mut self, task: &str, attempt: u32) -> Vec<String> {
        self.send(Event::Started {
            task: task.to_owned(),
            attempt,
        })
    }

    pub(crate) fn exited(&mut self, task: &str, attempt: u32, code: i32) -> Vec<String> {
        let exit = ExitResult {
            code,
            ..ExitResult::default()
        };
        self.send(Event::Exited {
            task: task.to_owned(),
            attempt,
            exit,
        })
    }

    pub(crate) fn start_failed(
        &mut self,
        task: &str,
        attempt: u32,
        recoverable: bool,
    ) -> Vec<String> {
        let failure = StartFailure {
            step: StartStep::Driver,
            message: "no such file".to_owned(),
            recoverable,
        };
        self.send(Event::StartFailed {
            task: task.to_owned(),
            attempt,
            failure,
        })
    }

    pub(crate) fn stop(&mut self) -> Vec<String> {
        self.send(Event::Stop { skip_delays: false })
    }

    pub(crate) fn status(&self) -> ClientStatus {
        self.runner.client().status
    }

    pub(crate) fn phase(&self, task: &str) -> TaskPhase {
        self.runner.client().task_states[task].phase
    }

    pub(crate) fn has_failed(&self, task: &str) -> bool {
        self.runner.client().task_states[task].failed
    }

    /// The types of a task's events, oldest first.
    pub(crate) fn events(&self, task: &str) -> Vec<String> {
        let state = self.runner.client().task_states[task].clone();
        state
            .events
            .into_iter()
            .map(|event| event.event_type)
            .collect()
    }

    pub(crate) fn last_event(&self, task: &str) -> model::TaskEvent {
        self.runner.client().task_states[task]
            .events
            .last()
            .unwrap()
            .clone()
    }
}

/// One effect on one line; reports are left out, the property test checks them.
fn line(effect: &Effect) -> Option<String> {
    Some(match effect {
        Effect::Prerun { must_exist: false } => "prerun".to_owned(),
        Effect::Prerun { must_exist: true } => "prerun again".to_owned(),
        Effect::Start { task, attempt } => format!("start {task} {attempt}"),
        Effect::CancelStart { task, attempt } => format!("cancel start {task} {attempt}"),
        Effect::Recover { task, attempt } => format!("recover {task} {attempt}"),
        Effect::Stop {
            task,
            attempt,
            signal,
            grace,
        } => {
            format!("stop {task} {attempt} {signal}{}s", grace.as_secs())
        }
        Effect::Forget { task, attempt } => format!("forget {task} {attempt}"),
        Effect::Report => return None,
        Effect::Ended => "ended".to_owned(),
    })
}
