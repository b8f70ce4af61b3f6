//! A task after the agent's restart: its process is found again, or it is known to be gone.

use model::TaskPhase;

use super::{Context, Kill, KillStep, Phase, TaskRunner, Then};
use crate::alloc::Boot;
use crate::effect::Effect;
use crate::task_event;
use crate::time::Uptime;

impl TaskRunner {
    /// Prepares a task that was just read back: what ran must be found again.
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

    /// Asks for the process of a restored task.
    pub(crate) fn recover(&mut self, cx: &mut Context<'_>) {
        if let Phase::Recovering { .. } = self.phase {
            cx.effects.push(Effect::Recover {
                task: cx.name.to_owned(),
                attempt: self.attempt,
            });
        }
    }

    /// Moves what was measured on another boot's clock to this one.
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
        self.go_on_killing(cx);
    }

    /// Takes note that the process is gone and nobody saw its end.
    ///
    /// A server may have replaced the allocation meanwhile, so unless `may_start`, the task waits
    /// for one to be heard. A start that was never confirmed is simply made again.
    pub(crate) fn not_recovered(&mut self, cx: &mut Context<'_>, reason: &str, may_start: bool) {
        let Phase::Recovering { was_running } = self.phase else {
            return;
        };
        self.forget(cx);
        match self.kill.take() {
            Some(Kill {
                then: Then::End, ..
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
