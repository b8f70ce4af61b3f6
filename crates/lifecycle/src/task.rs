//! State machine of one task: gate, start, run, kill, restart.
//!
//! Independent of its siblings: the allocation's machine ([`crate::alloc`]) opens its gate, kills it,
//! and passes the driver's answers on. `phase` has its phases, [`kill`] the kill,
//! [`restore`] the restart of the agent.

mod kill;
mod phase;
mod restore;

use std::time::Duration;

use model::{ExitResult, TaskEvent, TaskPhase, TaskState, Timestamp};
use rand::Rng;
use serde::{Deserialize, Serialize};

use crate::effect::Effect;
use crate::event::StartFailure;
use crate::restart::{Ended, RestartDecision, RestartTracker};
use crate::spec::TaskSpec;
use crate::task_event;
use crate::time::{Now, Uptime};

/// Inputs and outputs of a task's step.
pub(crate) struct Context<'a> {
    pub(crate) now: Now,
    pub(crate) name: &'a str,
    pub(crate) spec: &'a TaskSpec,
    pub(crate) effects: &'a mut Vec<Effect>,
    pub(crate) rng: &'a mut dyn Rng,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TaskRunner {
    visible: TaskState,
    /// Start of the running process.
    started_at: Uptime,
    /// Number of the latest start; 0: none yet.
    attempt: u32,
    phase: Phase,
    tracker: RestartTracker,
    kill: Option<Kill>,
    /// A visible change was made; cleared by [`Self::take_changed`].
    #[serde(skip)]
    changed: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Phase {
    /// Its gate is closed.
    Waiting,
    /// The driver starts a process.
    Starting,
    /// The agent was restarted, and the driver looks for the process.
    Recovering {
        /// The start was confirmed.
        was_running: bool,
    },
    /// The process is gone, and its exit is unknown. The servers may have replaced the allocation.
    Lost,
    Running,
    /// Waits for the restart delay.
    BackingOff {
        until: Uptime,
    },
    Dead,
}

/// A kill in progress.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Kill {
    then: Purpose,
    step: KillStep,
}

/// Purpose of a kill.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Purpose {
    End,
    /// A requested restart, with its reason.
    Restart(String),
    /// A restart because of a failing check, which counts as a failure of the task.
    Unhealthy,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum KillStep {
    /// The process is being started or recovered.
    AwaitProcess { skip_delay: bool },
    /// The shutdown delay.
    Delay { until: Uptime },
    /// The driver stops it, after this many failures.
    Stopping {
        failures: u32,
        retry_at: Option<Uptime>,
    },
}

impl TaskRunner {
    pub(crate) fn new(now: Now) -> Self {
        let mut runner = Self {
            visible: TaskState::default(),
            started_at: Uptime::default(),
            attempt: 0,
            phase: Phase::Waiting,
            tracker: RestartTracker::new(now.uptime),
            kill: None,
            changed: false,
        };
        runner.record(task_event::received(now.wall));
        runner
    }

    pub(crate) fn visible(&self) -> &TaskState {
        &self.visible
    }

    pub(crate) fn started_at(&self) -> Uptime {
        self.started_at
    }

    pub(crate) fn is_dead(&self) -> bool {
        self.phase == Phase::Dead
    }

    pub(crate) fn is_running(&self) -> bool {
        self.visible.phase == TaskPhase::Running
    }

    /// Returns whether clients may be sent to it.
    pub(crate) fn is_served(&self) -> bool {
        self.is_running() && self.kill.is_none()
    }

    pub(crate) fn is_successful(&self) -> bool {
        self.visible.is_successful()
    }

    pub(crate) fn is_waiting(&self) -> bool {
        self.phase == Phase::Waiting
    }

    /// Returns the attempt that may have a process or starts next.
    pub(crate) fn expected_attempt(&self) -> u32 {
        if self.may_have_process() {
            self.attempt
        } else {
            self.attempt + 1
        }
    }

    pub(crate) fn attempt(&self) -> u32 {
        self.attempt
    }

    /// Returns whether the visible state has changed since the last call.
    pub(crate) fn take_changed(&mut self) -> bool {
        std::mem::take(&mut self.changed)
    }

    pub(crate) fn record(&mut self, event: TaskEvent) {
        self.visible.record(event);
        self.changed = true;
    }

    /// Sets the end of a task that never ran, when its allocation has ended.
    pub(crate) fn stamp_finished(&mut self, wall: Timestamp) {
        if self.visible.finished_at.is_never() {
            self.visible.finished_at = wall;
            self.changed = true;
        }
    }

    pub(crate) fn start(&mut self, cx: &mut Context<'_>) {
        if self.attempt == 0 {
            self.record(task_event::task_setup(cx.now.wall));
        }
        self.attempt += 1;
        self.phase = Phase::Starting;
        cx.effects.push(Effect::Start {
            task: cx.name.to_owned(),
            attempt: self.attempt,
        });
    }

    pub(crate) fn started(&mut self, cx: &mut Context<'_>) {
        if self.phase != Phase::Starting {
            return;
        }
        self.run(cx.now);
        self.continue_kill(cx);
    }

    fn run(&mut self, now: Now) {
        self.phase = Phase::Running;
        self.started_at = now.uptime;
        self.visible.started_at = now.wall;
        self.set_visible_phase(TaskPhase::Running);
        self.record(task_event::started(now.wall));
    }

    pub(crate) fn start_failed(&mut self, cx: &mut Context<'_>, failure: &StartFailure) {
        if self.phase != Phase::Starting {
            return;
        }
        self.forget(cx);
        self.record(task_event::start_failure(cx.now.wall, failure));
        self.after_end(
            cx,
            Ended::StartError {
                recoverable: failure.recoverable,
            },
        );
    }

    pub(crate) fn exited(&mut self, cx: &mut Context<'_>, exit: &ExitResult) {
        if !self.may_have_process() {
            return;
        }
        if self.visible.started_at.is_never() {
            self.visible.started_at = cx.now.wall;
        }
        self.forget(cx);
        self.record(task_event::terminated(cx.now.wall, exit));
        let ended = if exit.is_success() {
            Ended::Success
        } else {
            Ended::Failure
        };
        self.after_end(cx, ended);
    }

    fn forget(&self, cx: &mut Context<'_>) {
        cx.effects.push(Effect::Forget {
            task: cx.name.to_owned(),
            attempt: self.attempt,
        });
    }

    /// Decides the next phase once no process exists.
    fn after_end(&mut self, cx: &mut Context<'_>, ended: Ended) {
        match self.kill.take() {
            Some(Kill {
                then: Purpose::End, ..
            }) => {
                self.record(task_event::killed(cx.now.wall));
                self.die(cx.now.wall, false);
            }
            Some(Kill {
                then: Purpose::Restart(reason),
                ..
            }) => {
                self.back_off(cx.now, Duration::ZERO, &reason);
            }
            other => {
                let is_unhealthy = other.is_some();
                let verdict = self.tracker.decide(
                    cx.now.uptime,
                    &cx.spec.restart,
                    cx.spec.restart_on_success,
                    if is_unhealthy { Ended::Failure } else { ended },
                    cx.rng,
                );
                self.follow(cx.now, verdict);
            }
        }
    }

    fn follow(&mut self, now: Now, verdict: RestartDecision) {
        match verdict {
            RestartDecision::Restart { delay, reason } => self.back_off(now, delay, &reason),
            RestartDecision::Done => self.die(now.wall, false),
            RestartDecision::GiveUp { reason } => {
                self.record(task_event::not_restarting(now.wall, &reason));
                self.die(now.wall, true);
            }
        }
    }

    fn back_off(&mut self, now: Now, delay: Duration, reason: &str) {
        self.visible.restarts = self.visible.restarts.saturating_add(1);
        self.visible.last_restart = now.wall;
        self.set_visible_phase(TaskPhase::Pending);
        self.record(task_event::restarting(now.wall, delay, reason));
        self.phase = Phase::BackingOff {
            until: now.uptime.plus(delay),
        };
    }

    /// Fails a task whose setup failed; [`Self::kill`] ends its process first, if there is one.
    pub(crate) fn fail_setup(&mut self, cx: &mut Context<'_>, error: &str) {
        if self.phase == Phase::Dead {
            return;
        }
        self.record(task_event::setup_failure(cx.now.wall, error));
        self.visible.failed = true;
        if self.may_have_process() {
            self.kill(cx, true);
        } else {
            self.die(cx.now.wall, true);
        }
    }

    pub(crate) fn tick(&mut self, cx: &mut Context<'_>) {
        let now = cx.now.uptime;
        match self.phase {
            Phase::BackingOff { until } if now >= until => self.phase = Phase::Waiting,
            _ => {}
        }
        if self.phase != Phase::Running {
            return;
        }
        match self.kill.as_ref().map(|kill| kill.step) {
            Some(KillStep::Delay { until }) if now >= until => self.stop(cx, 0),
            Some(KillStep::Stopping {
                failures,
                retry_at: Some(at),
            }) if now >= at => {
                self.stop(cx, failures);
            }
            _ => {}
        }
    }

    pub(crate) fn next_deadline(&self) -> Option<Uptime> {
        if let Phase::BackingOff { until } = self.phase {
            return Some(until);
        }
        if self.phase != Phase::Running {
            return None;
        }
        match self.kill.as_ref().map(|kill| kill.step) {
            Some(KillStep::Delay { until }) => Some(until),
            Some(KillStep::Stopping { retry_at, .. }) => retry_at,
            _ => None,
        }
    }
}
