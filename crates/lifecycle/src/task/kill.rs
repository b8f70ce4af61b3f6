//! Kill of a task's process: to end the task, or to restart it.

use std::time::Duration;

use model::{TaskPhase, Timestamp};

use super::{Context, Kill, KillStep, Phase, Purpose, TaskRunner};
use crate::effect::Effect;
use crate::restart::RestartTracker;
use crate::task_event;
use crate::time::Now;

/// First retry pause after a failed stop; each further pause is four times as long, up to
/// [`STOP_RETRY_MAX`]. Source: Nomad 2.0 behaviour.
const STOP_RETRY_BASE: Duration = Duration::from_secs(5);
/// Longest retry pause. Nomad gives up after five tries; here the retries continue while the process
/// lives, which costs little at this rate.
const STOP_RETRY_MAX: Duration = Duration::from_secs(120);
/// Failed stops with an event; more would push the reason out of the ten events.
const STOP_FAILURES_SHOWN: u32 = 3;

impl TaskRunner {
    /// Ends the task for good. Idempotent, except that a repeated call may skip the delay.
    pub(crate) fn kill(&mut self, cx: &mut Context<'_>, skip_delay: bool) {
        match self.phase {
            Phase::Dead => {}
            Phase::Waiting | Phase::Lost | Phase::BackingOff { .. } => {
                self.record(task_event::killed(cx.now.wall));
                self.die(cx.now.wall, false);
            }
            Phase::Starting | Phase::Recovering { .. } | Phase::Running => match &mut self.kill {
                None => self.begin_kill(cx, Purpose::End, skip_delay),
                Some(kill) => {
                    kill.then = Purpose::End;
                    if skip_delay {
                        self.skip_delay(cx);
                    }
                }
            },
        }
    }

    /// Ends a poststop task that does not run and will not start.
    pub(crate) fn cancel(&mut self, cx: &mut Context<'_>) {
        if !self.may_have_process() && self.phase != Phase::Dead {
            self.die(cx.now.wall, false);
        }
    }

    /// Replaces the process, if one runs.
    pub(crate) fn restart(&mut self, cx: &mut Context<'_>, reason: &str) {
        if self.can_restart() {
            self.record(task_event::restart_signaled(cx.now.wall, reason));
            self.begin_kill(cx, Purpose::Restart(reason.to_owned()), true);
        }
    }

    /// Replaces the process because a service check keeps failing; the restart policy decides as after a
    /// failure.
    pub(crate) fn restart_unhealthy(&mut self, cx: &mut Context<'_>, reason: &str) {
        if self.can_restart() {
            self.record(task_event::restart_signaled(cx.now.wall, reason));
            self.begin_kill(cx, Purpose::Unhealthy, true);
        }
    }

    /// Ends the running task as failed; the restart policy does not apply.
    pub(crate) fn fail(&mut self, cx: &mut Context<'_>, reason: &str) {
        if self.can_restart() {
            self.record(task_event::not_restarting(cx.now.wall, reason));
            self.visible.failed = true;
            self.kill(cx, false);
        }
    }

    /// Resets a dead task to wait for its gate, with a fresh restart policy.
    pub(crate) fn revive(&mut self, now: Now, reason: &str) {
        if self.phase != Phase::Dead {
            return;
        }
        self.record(task_event::restart_signaled(now.wall, reason));
        self.phase = Phase::Waiting;
        self.tracker = RestartTracker::new(now.uptime);
        self.visible.failed = false;
        self.visible.finished_at = Timestamp::NEVER;
        self.set_visible_phase(TaskPhase::Pending);
    }

    fn begin_kill(&mut self, cx: &mut Context<'_>, then: Purpose, skip_delay: bool) {
        self.kill = Some(Kill {
            then,
            step: KillStep::AwaitProcess { skip_delay },
        });
        if self.phase == Phase::Starting {
            let (task, attempt) = (cx.name.to_owned(), self.attempt);
            cx.effects.push(Effect::CancelStart { task, attempt });
        } else if self.phase == Phase::Running {
            self.continue_kill(cx);
        }
    }

    /// Continues a kill that waited for the process.
    pub(super) fn continue_kill(&mut self, cx: &mut Context<'_>) {
        let Some(kill) = &mut self.kill else { return };
        match kill.step {
            KillStep::AwaitProcess { skip_delay } => {
                let is_restart = !matches!(kill.then, Purpose::End);
                if cx.spec.shutdown_delay.is_zero() || is_restart {
                    self.stop(cx, 0);
                } else if skip_delay {
                    self.record(task_event::skipping_shutdown_delay(cx.now.wall));
                    self.stop(cx, 0);
                } else {
                    let until = cx.now.uptime.plus(cx.spec.shutdown_delay);
                    kill.step = KillStep::Delay { until };
                    let delay = cx.spec.shutdown_delay;
                    self.record(task_event::waiting_for_shutdown_delay(cx.now.wall, delay));
                }
            }
            // The delay continues while the agent is down.
            KillStep::Delay { .. } => self.tick(cx),
            KillStep::Stopping { failures, .. } => self.stop(cx, failures),
        }
    }

    fn skip_delay(&mut self, cx: &mut Context<'_>) {
        match self.kill.as_mut().map(|kill| &mut kill.step) {
            Some(KillStep::AwaitProcess { skip_delay }) => *skip_delay = true,
            Some(KillStep::Delay { .. }) if self.phase == Phase::Running => {
                self.record(task_event::skipping_shutdown_delay(cx.now.wall));
                self.stop(cx, 0);
            }
            _ => {}
        }
    }

    pub(super) fn stop(&mut self, cx: &mut Context<'_>, failures: u32) {
        let Some(kill) = &mut self.kill else { return };
        if !matches!(kill.step, KillStep::Stopping { .. }) {
            let event =
                task_event::killing(cx.now.wall, &cx.spec.kill_signal, cx.spec.kill_timeout);
            self.visible.record(event);
            self.changed = true;
        }
        kill.step = KillStep::Stopping {
            failures,
            retry_at: None,
        };
        cx.effects.push(Effect::Stop {
            task: cx.name.to_owned(),
            attempt: self.attempt,
            signal: cx.spec.kill_signal.clone(),
            grace: cx.spec.kill_timeout,
        });
    }

    pub(crate) fn stop_failed(&mut self, cx: &mut Context<'_>, error: &str) {
        if self.phase != Phase::Running {
            return;
        }
        let Some(Kill {
            step: KillStep::Stopping { failures, retry_at },
            ..
        }) = &mut self.kill
        else {
            return;
        };
        let wait = STOP_RETRY_BASE.saturating_mul(4_u32.saturating_pow(*failures));
        *failures += 1;
        *retry_at = Some(cx.now.uptime.plus(wait.min(STOP_RETRY_MAX)));
        if *failures <= STOP_FAILURES_SHOWN {
            self.record(task_event::kill_failed(cx.now.wall, error));
        }
    }
}
