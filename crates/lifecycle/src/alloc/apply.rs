//! Direct changes of each event; the consequences are in [`super::consequences`].

use std::time::Duration;

use model::{JobType, TaskEvent};
use rand::Rng;

use super::{AllocRunner, Prerun, Step};
use crate::effect::Effect;
use crate::event::Event;
use crate::kill::{AllocKill, KillReason};
use crate::spec::AllocSpec;
use crate::task::TaskRunner;
use crate::task_event;
use crate::time::{Now, Uptime};

impl AllocRunner {
    pub(super) fn apply(
        &mut self,
        now: Now,
        event: Event,
        effects: &mut Vec<Effect>,
        rng: &mut dyn Rng,
    ) {
        let mut step = Step { now, effects, rng };
        if let Some((task, recorded)) = task_event_of(now, &event) {
            return self.record(&mut step, task, recorded);
        }
        match event {
            Event::Begin => self.begin(&mut step),
            Event::PrerunDone(result) => self.prerun_done(&mut step, result),
            Event::Started { task, attempt } => {
                self.answer(&mut step, &task, attempt, |runner, cx| runner.started(cx));
            }
            Event::StartFailed {
                task,
                attempt,
                failure,
            } => {
                self.answer(&mut step, &task, attempt, |runner, cx| {
                    runner.start_failed(cx, &failure);
                });
            }
            Event::Recovered { task, attempt } => {
                self.answer(&mut step, &task, attempt, |runner, cx| runner.recovered(cx));
            }
            Event::NotRecovered {
                task,
                attempt,
                reason,
            } => {
                let may_start = self.is_contacted || self.spec.job_type == JobType::System;
                self.answer(&mut step, &task, attempt, |runner, cx| {
                    runner.not_recovered(cx, &reason, may_start);
                });
            }
            Event::Exited {
                task,
                attempt,
                exit,
            } => {
                self.answer(&mut step, &task, attempt, |runner, cx| {
                    runner.exited(cx, &exit)
                });
            }
            Event::StopFailed {
                task,
                attempt,
                error,
            } => {
                self.answer(&mut step, &task, attempt, |runner, cx| {
                    runner.stop_failed(cx, &error);
                });
            }
            Event::Failed {
                task,
                attempt,
                reason,
            } => {
                self.answer(&mut step, &task, attempt, |runner, cx| {
                    runner.fail(cx, &reason);
                });
            }
            Event::Checked { key, epoch, result } => {
                let mut checks = std::mem::take(&mut self.checks);
                let before = checks.service_health(&key.owner, key.service);
                checks.record(now, (&key, epoch), result, |task| self.started_at(task));
                // Readers of services get the result.
                self.is_changed |= checks.service_health(&key.owner, key.service) != before;
                self.checks = checks;
            }
            Event::VolumeMessage { message } => self.each_task(&mut step, |runner, cx| {
                runner.record(task_event::volume_message(cx.now.wall, &message));
            }),
            Event::ServersContacted => {
                self.is_contacted = true;
                self.state
                    .tasks
                    .values_mut()
                    .for_each(TaskRunner::servers_contacted);
            }
            Event::Contact { age } => self.contact(now, age),
            Event::Reconnected => {
                for task in self.state.tasks.values_mut() {
                    task.record(task_event::reconnected(now.wall));
                }
            }
            Event::Update(spec) => self.update(now, *spec),
            Event::Stop { skip_delays } => {
                self.begin_kill(now.uptime, KillReason::Stopped, skip_delays);
            }
            Event::Restart { scope, reason } => self.restart(&mut step, &scope, &reason),
            Event::Tick => self.tick(&mut step),
            // Recorded above.
            Event::DriverMessage { .. }
            | Event::Signaling { .. }
            | Event::DownloadingArtifacts { .. }
            | Event::TemplateMessage { .. }
            | Event::IdentityMessage { .. }
            | Event::VaultMessage { .. }
            | Event::ConsulMessage { .. }
            | Event::PluginHealth { .. } => {}
        }
    }

    fn record(&mut self, step: &mut Step<'_>, task: &str, event: TaskEvent) {
        self.with_task(step, task, |runner, _| runner.record(event));
    }

    fn begin(&mut self, step: &mut Step<'_>) {
        self.arm_run_deadline(step.now);
        self.each_task(step, |runner, cx| runner.recover(cx));
        let must_exist = self.state.prerun == Prerun::Again;
        if (must_exist || self.state.prerun == Prerun::Pending) && !self.state.is_ended {
            step.effects.push(Effect::Prerun { must_exist });
        }
        self.watch_health(step.now.uptime);
    }

    fn prerun_done(&mut self, step: &mut Step<'_>, result: Result<(), String>) {
        if !matches!(self.state.prerun, Prerun::Pending | Prerun::Again) {
            return;
        }
        match result {
            Ok(()) => self.state.prerun = Prerun::Done,
            Err(error) => {
                self.state.prerun = Prerun::Failed(error.clone());
                self.is_changed = true;
                self.begin_kill(step.now.uptime, KillReason::SetupFailed, true);
                self.each_task(step, |runner, cx| runner.fail_setup(cx, &error));
            }
        }
    }

    /// Converts the server's wall-clock deadline into uptime.
    fn arm_run_deadline(&mut self, now: Now) {
        self.state.run_deadline = self
            .spec
            .run_until
            .map(|until| now.uptime.plus(until.since(now.wall)));
    }

    fn contact(&mut self, now: Now, age: Duration) {
        self.state.contact_deadline = self
            .spec
            .stop_on_client_after()
            .map(|limit| now.uptime.plus(limit.saturating_sub(age)));
    }

    /// Applies everything that can change under a running process. The set of tasks cannot.
    fn update(&mut self, now: Now, mut spec: AllocSpec) {
        let is_rearmed = spec.run_until != self.spec.run_until;
        spec.tasks
            .retain(|name, _| self.spec.tasks.contains_key(name));
        for (name, task) in std::mem::take(&mut self.spec.tasks) {
            spec.tasks.entry(name).or_insert(task);
        }
        self.spec = spec;
        if is_rearmed {
            self.arm_run_deadline(now);
        }
        self.watch_health(now.uptime);
        self.is_changed = true;
    }

    fn watch_health(&mut self, now: Uptime) {
        let spec = &self.spec;
        self.state
            .health
            .watch(spec.deployment_id, spec.health, now);
    }

    fn tick(&mut self, step: &mut Step<'_>) {
        let now = step.now.uptime;
        if self
            .state
            .run_deadline
            .is_some_and(|deadline| now >= deadline)
        {
            self.begin_kill(now, KillReason::RanTooLong, true);
        }
        if self
            .state
            .contact_deadline
            .is_some_and(|deadline| now >= deadline)
        {
            self.begin_kill(now, KillReason::NoContact, true);
        }
        self.each_task(step, |runner, cx| runner.tick(cx));
    }

    /// Starts to kill the allocation, or gives a kill in progress a reason with higher precedence.
    pub(super) fn begin_kill(&mut self, now: Uptime, reason: KillReason, skip_delays: bool) {
        if self.state.is_ended {
            return;
        }
        let has_precedence = match reason {
            KillReason::RanTooLong => !self.has_run_too_long(),
            KillReason::Stopped => !self.is_killed_for_good() || skip_delays,
            _ => !self.is_killed_for_good(),
        };
        if !has_precedence {
            return;
        }
        let needs_delay = !skip_delays
            && self.state.kill.is_none()
            && !self.spec.group.shutdown_delay.is_zero()
            && self.state.tasks.values().any(TaskRunner::may_have_process);
        let was = self.state.kill.take();
        let delay_until = match &was {
            _ if skip_delays => None,
            Some(kill) => kill.delay_until,
            None => needs_delay.then(|| now.plus(self.spec.group.shutdown_delay)),
        };
        let reason = match &was {
            Some(kill) if kill.reason == KillReason::RanTooLong => kill.reason,
            _ => reason,
        };
        let skip_delays = skip_delays || was.is_some_and(|kill| kill.skip_delays);
        self.state.kill = Some(AllocKill {
            reason,
            delay_until,
            skip_delays,
        });
        self.is_changed = true;
    }
}

/// Returns the task and its event for what is recorded for the user and changes nothing else.
fn task_event_of(now: Now, event: &Event) -> Option<(&str, TaskEvent)> {
    let (task, recorded) = match event {
        Event::DriverMessage { task, message } => {
            (task, task_event::driver_message(now.wall, message))
        }
        Event::Signaling { task, signal } => (task, task_event::signaling(now.wall, signal)),
        Event::DownloadingArtifacts { task } => (task, task_event::downloading_artifacts(now.wall)),
        Event::TemplateMessage { task, message } => {
            (task, task_event::template_message(now.wall, message))
        }
        Event::IdentityMessage { task, message } => {
            (task, task_event::identity_message(now.wall, message))
        }
        Event::VaultMessage { task, message } => {
            (task, task_event::vault_message(now.wall, message))
        }
        Event::ConsulMessage { task, message } => {
            (task, task_event::consul_message(now.wall, message))
        }
        Event::PluginHealth {
            task,
            is_healthy,
            message,
        } => (
            task,
            task_event::plugin_health(now.wall, *is_healthy, message),
        ),
        _ => return None,
    };
    Some((task.as_str(), recorded))
}
