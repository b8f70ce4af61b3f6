//! A task after a restart of the agent: its process is recovered, or known to be gone.

use model::TaskPhase;

use super::{Context, Kill, KillStep, Phase, Purpose, TaskRunner};
use crate::alloc::Boot;
use crate::effect::Effect;
use crate::task_event;
use crate::time::Uptime;

impl TaskRunner {
    /// Prepares a restored task: a running process must be recovered.
    pub(crate) fn restore(&mut self, now: Uptime, boot: Boot) {
        if boot == Boot::New {
            self.rebase(now);
        }
        match self.phase {
            Phase::Starting => self.phase = Phase::Recovering { was_running: false },
            Phase::Running => self.phase = Phase::Recovering { was_running: true },
            _ => {}
        }
    }

    /// Recovers the process of a restored task.
    pub(crate) fn recover(&mut self, cx: &mut Context<'_>) {
        if let Phase::Recovering { .. } = self.phase {
            cx.effects.push(Effect::Recover {
                task: cx.name.to_owned(),
                attempt: self.attempt,
            });
        }
    }

    /// Converts the times of another boot's clock.
    fn rebase(&mut self, now: Uptime) {
        self.tracker.rebase(now);
        self.started_at = now;
        if let Phase::BackingOff { until } = &mut self.phase {
            *until = now;
        }
        match self.kill.as_mut().map(|kill| &mut kill.step) {
            Some(KillStep::Delay { until }) => *until = now,
            Some(KillStep::Stopping { retry_at, .. }) => *retry_at = None,
            _ => {}
        }
    }

    pub(crate) fn recovered(&mut self, cx: &mut Context<'_>) {
        let Phase::Recovering { was_running } = self.phase else {
            return;
        };
        if was_running {
            self.phase = Phase::Running;
        } else {
            self.run(cx.now);
        }
        self.continue_kill(cx);
    }

    /// Handles a process that is gone with an unknown exit.
    ///
    /// The servers may have replaced the allocation, so unless `may_start`, the task waits for their
    /// list. An unconfirmed start is repeated.
    pub(crate) fn not_recovered(&mut self, cx: &mut Context<'_>, reason: &str, may_start: bool) {
        let Phase::Recovering { was_running } = self.phase else {
            return;
        };
        self.forget(cx);
        match self.kill.take() {
            Some(Kill {
                then: Purpose::End, ..
            }) => {
                self.record(task_event::killed(cx.now.wall));
                self.die(cx.now.wall, false);
            }
            Some(_) => self.wait_again(),
            None if was_running => {
                self.record(task_event::failed_restoring(cx.now.wall, reason, may_start));
                self.wait_again();
                if !may_start {
                    self.phase = Phase::Lost;
                }
            }
            None => self.wait_again(),
        }
    }

    fn wait_again(&mut self) {
        self.phase = Phase::Waiting;
        self.set_visible_phase(TaskPhase::Pending);
    }

    pub(crate) fn servers_contacted(&mut self) {
        if self.phase == Phase::Lost {
            self.phase = Phase::Waiting;
        }
    }
}
