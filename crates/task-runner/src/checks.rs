//! Runs of service checks: a tokio task for each watched check, which sends its results as events.

use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use lifecycle::{CheckKey, CheckResult, Event, Watched};
use model::ServiceOwner;
use model::service::{CheckType, Provider};
use rand::RngExt as _;
use tokio::time::{Instant, MissedTickBehavior, interval_at, timeout};
use tracing::Instrument;

use crate::check_view::CheckView;
use crate::consul_services::{Followed, send_result};
use crate::probe::Probe;
use crate::runner::Runner;
use crate::script::ScriptCheck;
use crate::services;

impl Runner {
    /// Starts the checks that are watched now, and ends the others.
    pub(crate) fn sync_checks(&mut self) {
        let watched = self
            .state
            .machine()
            .checks()
            .map(|(_, watched)| watched.epoch);
        let watched: Vec<u64> = watched.collect();
        self.effects.checks.0.retain(|epoch, run| {
            let is_watched = watched.contains(epoch);
            if !is_watched {
                run.abort();
            }
            is_watched
        });
        if watched.len() == self.effects.checks.0.len() {
            return;
        }
        let new: Vec<(CheckKey, Watched)> = self
            .state
            .machine()
            .checks()
            .filter(|(_, watched)| !self.effects.checks.0.contains_key(&watched.epoch))
            .map(|(key, watched)| (key.clone(), watched.clone()))
            .collect();
        for (key, watched) in new {
            let epoch = watched.epoch;
            let first = first_run(watched.check.interval, self.state.rng().random());
            let Some(run) = self.run_of(key, watched, first) else {
                continue;
            };
            let run = self.effects.work.spawn(run.in_current_span());
            self.effects.checks.0.insert(epoch, run);
        }
    }

    /// Returns the endless run of a check: the first request after `first`, then one per interval.
    ///
    /// Each check has its own run and at most one request, which its timeout bounds: a slow target
    /// delays no other check.
    fn run_of(
        &self,
        key: CheckKey,
        watched: Watched,
        first: Duration,
    ) -> Option<BoxFuture<'static, ()>> {
        let assignment = self.state.assignment();
        let group = assignment.job.task_group(&assignment.alloc.task_group)?;
        let facts = self.facts();
        let env = services::env(assignment, group, &key.owner, &facts);
        let (service, check) = (&watched.service, &watched.check);
        let answers = self.inputs.answers.clone();
        let epoch = watched.epoch;
        let in_consul = match service.provider {
            Provider::Kafila => None,
            Provider::Consul => {
                let services = self
                    .inputs
                    .context
                    .consul_services
                    .as_ref()?
                    .services
                    .clone();
                // A check without an address is not registered.
                Some((
                    services,
                    self.effects.in_consul.check_ids.get(&key)?.clone(),
                ))
            }
        };
        if check.check_type != CheckType::Script
            && let Some((services, id)) = in_consul
        {
            let interval = check.interval;
            let followed = Followed {
                services,
                id,
                interval,
            };
            return Some(followed.run(key, epoch, answers).boxed());
        }
        let own = services::of_task(&key.owner, |task| self.driver_address(task));
        let wanted = (services::mode_of_check(service, check), &*check.port);
        let addresses = (&*facts, own.as_ref());
        let target = services::target(assignment, (&key.owner, service), wanted, &env, addresses);
        let run = if check.check_type == CheckType::Script {
            let line = std::iter::once(&check.command).chain(&check.args);
            Run::Script(ScriptCheck {
                task: watched.target(&key.owner).unwrap_or_default().to_owned(),
                line: line.map(|word| env.interpolate(word)).collect(),
                limit: check.timeout,
                runner: self.inputs.commands.clone(),
            })
        } else {
            Run::Probe(Probe::new(check, target, &env))
        };
        let (interval, limit) = (check.interval, check.timeout);
        let running = async move {
            let mut ticks = interval_at(Instant::now() + first, interval);
            // A check that takes longer than its interval is not made up for.
            ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
            loop {
                ticks.tick().await;
                let result = match &run {
                    Run::Probe(probe) => {
                        timeout(limit, probe.run())
                            .await
                            .unwrap_or_else(|_| CheckResult {
                                output: format!("no answer within {}s", limit.as_secs_f64()),
                                ..CheckResult::default()
                            })
                    }
                    Run::Script(script) => script.run().await,
                };
                let checked = Event::Checked {
                    key: key.clone(),
                    epoch,
                    result: result.clone(),
                };
                if answers.send(checked).await.is_err() {
                    return;
                }
                if let Some((services, id)) = &in_consul {
                    send_result(services, id, &result).await;
                }
            }
        };
        Some(running.boxed())
    }

    /// Returns the checks of the allocation and their newest results.
    pub(crate) fn check_views(&self) -> Vec<CheckView> {
        let alloc = &self.state.assignment().alloc;
        let group = &*alloc.task_group;
        let views = self.state.machine().checks().map(|(key, watched)| {
            let task = match &key.owner {
                ServiceOwner::Group => String::new(),
                ServiceOwner::Task(task) => task.clone(),
            };
            let (service, check) = (&watched.service, &watched.check);
            let (result, time) = watched.last.clone().unwrap_or_default();
            let owner = match &key.owner {
                ServiceOwner::Group => format!("group-{group}"),
                ServiceOwner::Task(task) => task.clone(),
            };
            let id = format!(
                "_nomad-check-{}-{owner}-{}-{}",
                alloc.id, key.service, key.check
            );
            CheckView {
                id,
                mode: match check.on_update {
                    model::service::OnUpdate::Ignore => "readiness",
                    _ => "healthiness",
                },
                status: watched.status.as_str(),
                code: result.code,
                output: result.output,
                time,
                group: group.to_owned(),
                task,
                service: service.name.clone(),
                check: check.name.clone(),
            }
        });
        views.collect()
    }
}

/// One run of a check.
enum Run {
    Probe(Probe),
    Script(ScriptCheck),
}

/// Returns the pause before the first run of a check: between a quarter and three quarters of its
/// interval. `random` is below 1. Checks that begin together, as when an agent starts, run apart.
fn first_run(interval: Duration, random: f64) -> Duration {
    interval / 4 + (interval / 2).mul_f64(random)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_run_is_around_half_an_interval() {
        let interval = Duration::from_secs(10);
        for (random, milliseconds) in [(0.0, 2_500), (0.5, 5_000), (1.0, 7_500)] {
            let first = first_run(interval, random);
            assert_eq!(first, Duration::from_millis(milliseconds));
        }
    }
}
