//! Consequences of the tasks' states, independent of the event: evaluated after every step, so that no
//! order of events leaves work undone.

use model::{ServiceOwner, Timestamp};
use rand::Rng;

use super::{AllocRunner, Prerun, Step};
use crate::checks::{Checks, WantedRestart};
use crate::effect::Effect;
use crate::gates::{self, Stage};
use crate::health::HealthInputs;
use crate::kill::{KillReason, next_to_kill};
use crate::spec::Role;
use crate::task::TaskRunner;
use crate::task_event;
use crate::time::{Now, Uptime};

impl AllocRunner {
    pub(super) fn apply_consequences(
        &mut self,
        now: Now,
        effects: &mut Vec<Effect>,
        rng: &mut dyn Rng,
    ) {
        let mut step = Step { now, effects, rng };
        if !self.state.is_ended {
            self.advance_stage();
            self.react_to_dead_tasks(&mut step);
            self.continue_kill(&mut step);
            self.start_open_tasks(&mut step);
            self.watch_checks(&mut step);
            self.announce_awaited(now.wall);
            self.update_health(now);
            self.end_if_all_are_dead(&mut step);
        }
        if self.state.is_ended {
            self.checks = Checks::default();
        }
        for task in self.state.tasks.values_mut() {
            self.is_changed |= task.take_changed();
        }
        if std::mem::take(&mut self.is_changed) {
            self.state.modify_time = now.wall;
            effects.push(Effect::Report);
        }
    }

    fn advance_stage(&mut self) {
        self.state.stage =
            self.state
                .stage
                .advanced(&self.spec.tasks, &self.state.tasks, &self.checks);
    }

    /// Records the sidecars that the main tasks wait for, once for each change of them.
    fn announce_awaited(&mut self, wall: Timestamp) {
        let is_open = self.state.prerun == Prerun::Done && self.state.kill.is_none();
        let awaited: Vec<String> = if is_open && self.state.stage == Stage::Prestart {
            let awaited = gates::awaited(&self.spec.tasks, &self.state.tasks, &self.checks);
            awaited.map(str::to_owned).collect()
        } else {
            Vec::new()
        };
        if awaited == self.state.announced || !is_open {
            return;
        }
        if !awaited.is_empty() {
            let event = task_event::waiting_for_sidecars(wall, &awaited);
            for (name, task) in &mut self.state.tasks {
                let spec = self.spec.tasks.get(name);
                if spec.is_some_and(|spec| spec.role == Role::Main) {
                    task.record(event.clone());
                }
            }
        }
        self.state.announced = awaited;
    }

    /// Starts to kill the other tasks when a dead task requires it.
    fn react_to_dead_tasks(&mut self, step: &mut Step<'_>) {
        if self.state.kill.is_some() || self.state.stage == Stage::Poststop {
            return;
        }
        let wall = step.now.wall;
        let (reason, event) = if let Some(leader) = self.dead_leader() {
            (
                KillReason::LeaderDead,
                (leader, task_event::leader_dead(wall)),
            )
        } else if let Some(sibling) = self.failed_task() {
            let event = task_event::sibling_failed(wall, &sibling);
            (KillReason::SiblingFailed, (sibling, event))
        } else if self.only_sidecars_are_left() {
            (
                KillReason::MainTasksDead,
                (String::new(), task_event::main_tasks_dead(wall)),
            )
        } else {
            return;
        };
        let (cause, event) = event;
        for (name, task) in &mut self.state.tasks {
            let is_spared = self
                .spec
                .tasks
                .get(name)
                .is_none_or(|spec| spec.role == Role::Poststop);
            if *name != cause && !is_spared && !task.is_dead() {
                task.record(event.clone());
            }
        }
        self.begin_kill(step.now.uptime, reason, false);
    }

    fn dead_leader(&self) -> Option<String> {
        let leaders = self.spec.tasks.iter().filter(|(_, spec)| spec.leader);
        let mut dead = leaders.filter(|(name, _)| {
            self.state
                .tasks
                .get(*name)
                .is_some_and(TaskRunner::is_successful)
        });
        dead.next().map(|(name, _)| name.clone())
    }

    fn failed_task(&self) -> Option<String> {
        let mut failed = self.spec.tasks.iter().filter(|(name, spec)| {
            spec.role != Role::Poststop
                && self
                    .state
                    .tasks
                    .get(*name)
                    .is_some_and(|task| task.is_dead() && task.visible().failed)
        });
        failed.next().map(|(name, _)| name.clone())
    }

    fn only_sidecars_are_left(&self) -> bool {
        let has_main = self.spec.tasks.values().any(|spec| spec.role == Role::Main);
        let others = |role: Role| role != Role::Poststop && !role.is_sidecar();
        has_main
            && gates::all(
                &self.spec.tasks,
                &self.state.tasks,
                others,
                TaskRunner::is_dead,
            )
    }

    fn continue_kill(&mut self, step: &mut Step<'_>) {
        let Some(kill) = &mut self.state.kill else {
            return;
        };
        if kill
            .delay_until
            .is_some_and(|until| step.now.uptime < until)
        {
            return;
        }
        kill.delay_until = None;
        let skip_delays = kill.skip_delays;
        let ran_too_long = kill.reason == KillReason::RanTooLong;
        // Killing a task without a process takes effect at once and opens the next rank, so each
        // round but the last makes a task dead.
        loop {
            let names = next_to_kill(&self.spec.tasks, &self.state.tasks);
            for name in &names {
                self.with_task(step, name, |runner, cx| runner.kill(cx, skip_delays));
            }
            if names.is_empty() || names.iter().any(|name| !self.state.tasks[name].is_dead()) {
                break;
            }
        }
        if ran_too_long {
            self.end_poststop_tasks(step, skip_delays);
        }
        self.advance_stage();
    }

    fn end_poststop_tasks(&mut self, step: &mut Step<'_>, skip_delays: bool) {
        let is_poststop = |name: &str| {
            self.spec
                .tasks
                .get(name)
                .is_some_and(|spec| spec.role == Role::Poststop)
        };
        let names: Vec<String> = self
            .state
            .tasks
            .keys()
            .filter(|name| is_poststop(name))
            .cloned()
            .collect();
        for name in names {
            self.with_task(step, &name, |runner, cx| {
                runner.cancel(cx);
                runner.kill(cx, skip_delays);
            });
        }
    }

    fn start_open_tasks(&mut self, step: &mut Step<'_>) {
        if self.state.prerun != Prerun::Done {
            return;
        }
        let stage = self.state.stage;
        let is_killed = self.state.kill.is_some();
        let may_start = |role: Role| stage.is_open(role) && (role == Role::Poststop || !is_killed);
        let names: Vec<String> = self
            .spec
            .tasks
            .iter()
            .filter(|(name, spec)| {
                may_start(spec.role)
                    && self
                        .state
                        .tasks
                        .get(*name)
                        .is_some_and(TaskRunner::is_waiting)
            })
            .map(|(name, _)| name.clone())
            .collect();
        for name in names {
            self.with_task(step, &name, TaskRunner::start);
        }
    }

    /// Watches the checks of the registered services, and performs the restarts that they ask for.
    fn watch_checks(&mut self, step: &mut Step<'_>) {
        let now = step.now.uptime;
        self.watch_registered(now);
        let mut checks = std::mem::take(&mut self.checks);
        let restarts = checks.take_restarts(now, |task| self.started_at(task));
        self.checks = checks;
        if restarts.is_empty() {
            return;
        }
        for WantedRestart { task, reason } in restarts {
            match task {
                Some(task) => self.with_task(step, &task, |runner, cx| {
                    runner.restart_unhealthy(cx, &reason);
                }),
                None => self.each_task(step, |runner, cx| runner.restart_unhealthy(cx, &reason)),
            }
        }
        // The services of a task that is being restarted are not registered.
        self.watch_registered(now);
    }

    fn watch_registered(&mut self, now: Uptime) {
        let owners = self.registered();
        let spec = &self.spec;
        let services = owners.into_iter().map(|owner| {
            let services = match &owner {
                ServiceOwner::Group => spec.group.services.as_slice(),
                ServiceOwner::Task(task) => {
                    let task = spec.tasks.get(task);
                    task.map_or(&[][..], |task| task.services.as_slice())
                }
            };
            (owner, services)
        });
        self.checks.watch(services, now);
    }

    fn update_health(&mut self, now: Now) {
        if !self.is_health_watched() || self.state.health.verdict.is_some() {
            return;
        }
        let all = HealthInputs {
            specs: &self.spec.tasks,
            tasks: &self.state.tasks,
            checks: &self.checks,
        };
        let reasons = self
            .state
            .health
            .update_verdict(self.spec.health, &all, now);
        for (name, reason) in reasons {
            if let Some(task) = self.state.tasks.get_mut(&name) {
                task.record(task_event::alloc_unhealthy(now.wall, &reason));
            }
        }
        self.is_changed |= self.state.health.verdict.is_some();
    }

    fn end_if_all_are_dead(&mut self, step: &mut Step<'_>) {
        if !self.state.tasks.values().all(TaskRunner::is_dead) {
            return;
        }
        self.state.is_ended = true;
        self.is_changed = true;
        for task in self.state.tasks.values_mut() {
            task.stamp_finished(step.now.wall);
        }
        step.effects.push(Effect::Ended);
    }
}
