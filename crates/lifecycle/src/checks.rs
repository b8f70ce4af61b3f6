//! States of service checks: results come in, health and restarts follow from them.
//!
//! A check is watched while its owner's services are registered. The loop runs it and sends each
//! result with the epoch of the watch, so that a late result of an earlier watch changes nothing.
//! Nothing here is stored: a restarted agent begins with pending checks.
//!
//! Source: Nomad's public behaviour; `success_before_passing` and `failures_before_critical`, which
//! Nomad leaves to Consul, as Consul documents them.

use std::collections::BTreeMap;
use std::time::Duration;

use model::service::{InitialStatus, OnUpdate, Provider, ServiceCheck};
use model::{Service, ServiceHealth, ServiceOwner, Timestamp};

use crate::time::{Now, Uptime};

/// A check of the allocation: its owner, and the positions of its service and of itself.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CheckKey {
    pub owner: ServiceOwner,
    pub service: usize,
    pub check: usize,
}

/// The result of one run of a check.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CheckResult {
    pub outcome: CheckOutcome,
    /// Status of the HTTP response; 0: none.
    pub code: u16,
    /// The answer, or the reason of the failure.
    pub output: String,
}

/// The verdict on one run of a check.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CheckOutcome {
    Passed,
    /// Scripts and checks of Consul alone warn.
    Warned,
    #[default]
    Failed,
}

/// State of a check, as users see it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CheckStatus {
    #[default]
    Pending,
    Success,
    /// Counts as a failure unless the job ignores warnings.
    Warning,
    Failure,
}

impl CheckStatus {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Success => "success",
            Self::Warning => "warning",
            Self::Failure => "failure",
        }
    }
}

/// A check that is being watched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Watched {
    /// Differs between two watches of the same check.
    pub epoch: u64,
    pub service: Service,
    pub check: ServiceCheck,
    pub status: CheckStatus,
    /// The newest result, and its time.
    pub last: Option<(CheckResult, Timestamp)>,
    since: Uptime,
    /// Time of the newest result, unless that failed.
    passed_at: Option<Uptime>,
    /// Results in a row.
    successes: u32,
    failures: u32,
    /// Start of the present success.
    healthy_since: Uptime,
    /// First failure of the present row that counts for `check_restart`.
    unhealthy_since: Option<Uptime>,
}

/// A restart that a check asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WantedRestart {
    /// `None`: all running tasks.
    pub(crate) task: Option<String>,
    pub(crate) reason: String,
}

/// The checks of one allocation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Checks {
    watched: BTreeMap<CheckKey, Watched>,
    epochs: u64,
}

/// Health of all checks together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Health {
    /// All that count have passed since then.
    PassingSince(Uptime),
    NotPassing,
}

impl Watched {
    fn new(epoch: u64, service: &Service, check: &ServiceCheck, now: Uptime) -> Self {
        let status = match check.initial_status {
            Some(InitialStatus::Passing) => CheckStatus::Success,
            Some(InitialStatus::Critical) => CheckStatus::Failure,
            Some(InitialStatus::Warning) | None => CheckStatus::Pending,
        };
        Self {
            epoch,
            service: service.clone(),
            check: check.clone(),
            status,
            last: None,
            since: now,
            passed_at: None,
            successes: 0,
            failures: 0,
            healthy_since: now,
            unhealthy_since: None,
        }
    }

    fn record(&mut self, now: Now, result: CheckResult, counts_from: Uptime) {
        let outcome = result.outcome;
        self.last = Some((result, now.wall));
        self.passed_at = (outcome != CheckOutcome::Failed).then_some(now.uptime);
        let was_healthy = self.is_healthy();
        match outcome {
            CheckOutcome::Passed => {
                self.failures = 0;
                self.unhealthy_since = None;
                self.successes = self.successes.saturating_add(1);
                if self.successes >= self.needed(self.check.success_before_passing) {
                    self.status = CheckStatus::Success;
                }
            }
            CheckOutcome::Warned => {
                (self.successes, self.failures) = (0, 0);
                self.status = CheckStatus::Warning;
            }
            CheckOutcome::Failed => {
                self.successes = 0;
                self.failures = self.failures.saturating_add(1);
                if self.failures >= self.needed(self.check.failures_before_critical) {
                    self.status = CheckStatus::Failure;
                }
            }
        }
        if !was_healthy && self.is_healthy() {
            self.healthy_since = now.uptime;
        }
        let ignores_warnings = self
            .check
            .check_restart
            .is_some_and(|it| it.ignore_warnings);
        match self.status {
            CheckStatus::Warning if ignores_warnings => self.unhealthy_since = None,
            CheckStatus::Warning | CheckStatus::Failure
                if outcome != CheckOutcome::Passed && now.uptime >= counts_from =>
            {
                self.unhealthy_since.get_or_insert(now.uptime);
            }
            _ => {}
        }
    }

    /// Returns the number of results in a row that change the status. Consul counts its results itself.
    fn needed(&self, configured: u32) -> u32 {
        match self.service.provider {
            Provider::Kafila => configured.max(1),
            Provider::Consul => 1,
        }
    }

    /// Returns whether the allocation may be healthy.
    fn is_healthy(&self) -> bool {
        match self.status {
            CheckStatus::Success => true,
            CheckStatus::Warning => self.check.on_update == OnUpdate::IgnoreWarnings,
            CheckStatus::Pending | CheckStatus::Failure => false,
        }
    }

    /// Returns when the check restarts its tasks unless it passes before.
    ///
    /// `counts_from`: the end of the grace time. A failure from before it does not count.
    fn restart_at(&self, counts_from: Uptime) -> Option<Uptime> {
        let restart = self.check.check_restart.filter(|it| it.limit > 0)?;
        let since = self.unhealthy_since.filter(|since| *since >= counts_from)?;
        let rest: Duration = self.check.interval.saturating_mul(restart.limit - 1);
        Some(since.plus(rest))
    }

    /// Returns the task that the check restarts, and that a script runs in; `None`: all running ones.
    pub fn target<'a>(&'a self, owner: &'a ServiceOwner) -> Option<&'a str> {
        match owner {
            ServiceOwner::Task(task) => Some(task),
            ServiceOwner::Group => {
                let named = [&self.check.task, &self.service.task];
                let mut named = named.into_iter().filter(|task| !task.is_empty());
                named.next().map(String::as_str)
            }
        }
    }

    /// Returns the end of the grace time after the newest start among the tasks of the check.
    fn counts_from(&self, started_at: Uptime) -> Uptime {
        let grace = self.check.check_restart.map(|it| it.grace);
        self.since.max(started_at).plus(grace.unwrap_or_default())
    }

    /// Returns whether the check passes for the present process of its task: by a result since its start, not
    /// by an initial status or by a result of an earlier process.
    fn passes_since(&self, started_at: Uptime) -> bool {
        self.is_healthy() && self.passed_at.is_some_and(|at| at >= started_at)
    }

    fn counts_for_health(&self) -> bool {
        self.check.on_update != OnUpdate::Ignore
    }
}

impl Checks {
    /// Watches the checks of these services, and no others. A changed check starts anew.
    pub(crate) fn watch<'a>(
        &mut self,
        services: impl Iterator<Item = (ServiceOwner, &'a [Service])>,
        now: Uptime,
    ) {
        let mut wanted = BTreeMap::new();
        for (owner, services) in services {
            for (position, service) in services.iter().enumerate() {
                for (number, check) in service.checks.iter().enumerate() {
                    let key = CheckKey {
                        owner: owner.clone(),
                        service: position,
                        check: number,
                    };
                    wanted.insert(key, (service, check));
                }
            }
        }
        self.watched.retain(|key, watched| {
            let wanted = wanted.get(key);
            wanted.is_some_and(|(service, check)| {
                watched.check == **check && watched.service == **service
            })
        });
        for (key, (service, check)) in wanted {
            if !self.watched.contains_key(&key) {
                self.epochs += 1;
                let watched = Watched::new(self.epochs, service, check, now);
                self.watched.insert(key, watched);
            }
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&CheckKey, &Watched)> {
        self.watched.iter()
    }

    /// Records a result, unless it is of an earlier watch. `started_at` returns the newest start of a
    /// task, or of all tasks.
    pub(crate) fn record(
        &mut self,
        now: Now,
        (key, epoch): (&CheckKey, u64),
        result: CheckResult,
        started_at: impl Fn(Option<&str>) -> Uptime,
    ) {
        if let Some(watched) = self.watched.get_mut(key).filter(|it| it.epoch == epoch) {
            let start = started_at(watched.target(&key.owner));
            let counts_from = watched.counts_from(start);
            watched.record(now, result, counts_from);
        }
    }

    /// Takes the restarts that are due.
    pub(crate) fn take_restarts(
        &mut self,
        now: Uptime,
        started_at: impl Fn(Option<&str>) -> Uptime,
    ) -> Vec<WantedRestart> {
        let mut due = Vec::new();
        for (key, watched) in &mut self.watched {
            let task = watched.target(&key.owner).map(str::to_owned);
            let counts_from = watched.counts_from(started_at(task.as_deref()));
            if watched.restart_at(counts_from).is_some_and(|at| now >= at) {
                // The next row of failures begins after the restart.
                watched.unhealthy_since = None;
                let reason = format!("healthcheck: check {:?} unhealthy", watched.check.name);
                due.push(WantedRestart { task, reason });
            }
        }
        due
    }

    /// Returns the earliest restart that is due without a further result.
    pub(crate) fn next_deadline(
        &self,
        started_at: impl Fn(Option<&str>) -> Uptime,
    ) -> Option<Uptime> {
        let deadlines = self.watched.iter().filter_map(|(key, watched)| {
            let start = started_at(watched.target(&key.owner));
            watched.restart_at(watched.counts_from(start))
        });
        deadlines.min()
    }

    /// Returns the result of the checks of a service, given its owner and position.
    pub(crate) fn service_health(&self, owner: &ServiceOwner, service: usize) -> ServiceHealth {
        let first = CheckKey {
            owner: owner.clone(),
            service,
            check: 0,
        };
        let from_first = self.watched.range(first..);
        let own = from_first.take_while(|(key, _)| key.owner == *owner && key.service == service);
        let mut health = ServiceHealth::Passing;
        for (_, watched) in own {
            match watched.status {
                CheckStatus::Failure => return ServiceHealth::Failing,
                CheckStatus::Pending => health = ServiceHealth::Pending,
                CheckStatus::Success | CheckStatus::Warning => {}
            }
        }
        health
    }

    /// Returns the health of all checks that count for deployments; without any they have always passed.
    pub(crate) fn health(&self) -> Health {
        let mut since = Uptime(0);
        for watched in self.watched.values().filter(|it| it.counts_for_health()) {
            if !watched.is_healthy() {
                return Health::NotPassing;
            }
            since = since.max(watched.healthy_since);
        }
        Health::PassingSince(since)
    }

    /// Returns whether the checks of a task that count for health pass; false without any. They are those of
    /// its own services, and those of the group's services that name it.
    pub(crate) fn task_passes(&self, task: &str, started_at: Uptime) -> bool {
        let own = self.watched.iter().filter(|(key, watched)| {
            watched.counts_for_health() && watched.target(&key.owner) == Some(task)
        });
        let mut own = own.peekable();
        own.peek().is_some() && own.all(|(_, watched)| watched.passes_since(started_at))
    }

    /// Returns the checks that keep the allocation from being healthy: the task (`None`: the group's)
    /// and the name of the check.
    pub(crate) fn failing(&self) -> impl Iterator<Item = (Option<&str>, &str)> {
        let counted = self.watched.iter().filter(|(_, it)| it.counts_for_health());
        let failing = counted.filter(|(_, it)| !it.is_healthy());
        failing.map(|(key, it)| (it.target(&key.owner), it.check.name.as_str()))
    }
}
