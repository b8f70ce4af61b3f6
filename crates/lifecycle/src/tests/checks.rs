//! Service checks: their status, the health of their allocation, and the restarts that they ask for.

use model::service::{CheckRestart, CheckType, InitialStatus, OnUpdate, Provider, ServiceCheck};
use model::{Service, ServiceOwner};

use super::*;
use crate::{CheckKey, CheckOutcome, CheckResult, CheckStatus};

fn check() -> ServiceCheck {
    ServiceCheck {
        name: "alive".to_owned(),
        check_type: CheckType::Http,
        interval: seconds(10),
        timeout: seconds(2),
        ..ServiceCheck::default()
    }
}

fn with_check(check: ServiceCheck) -> Vec<Service> {
    vec![Service {
        name: "api".to_owned(),
        checks: vec![check],
        ..Service::default()
    }]
}

/// A task with one check.
fn checked(check: ServiceCheck) -> AllocSpec {
    let spec = service().with("web", Role::Main);
    spec.edit("web", |task| task.services = with_check(check))
}

fn key(owner: ServiceOwner) -> CheckKey {
    CheckKey {
        owner,
        service: 0,
        check: 0,
    }
}

impl Play {
    /// Sends a result of the allocation's only check.
    fn result(&mut self, passed: bool) -> Vec<String> {
        self.outcome(if passed {
            CheckOutcome::Passed
        } else {
            CheckOutcome::Failed
        })
    }

    fn outcome(&mut self, outcome: CheckOutcome) -> Vec<String> {
        let (key, epoch) = {
            let (key, watched) = self.runner.checks().next().unwrap();
            (key.clone(), watched.epoch)
        };
        let result = CheckResult {
            outcome,
            ..CheckResult::default()
        };
        self.send(Event::Checked { key, epoch, result })
    }

    fn check_status(&self) -> Option<CheckStatus> {
        let mut checks = self.runner.checks();
        checks.next().map(|(_, watched)| watched.status)
    }

    fn signaled(&self, task: &str) -> model::TaskEvent {
        let state = self.runner.client().task_states[task].clone();
        let mut events = state.events.into_iter().rev();
        events
            .find(|it| it.event_type == "Restart Signaled")
            .unwrap()
    }

    fn verdict(&self) -> Option<bool> {
        self.runner.client().health.map(|health| health.healthy)
    }
}

#[test]
fn results_in_a_row_change_the_status() {
    use CheckStatus::{Failure, Pending, Success};
    let with = |success: u32, failures: u32, initial: Option<InitialStatus>| ServiceCheck {
        success_before_passing: success,
        failures_before_critical: failures,
        initial_status: initial,
        ..check()
    };
    let cases: &[(ServiceCheck, &[(bool, CheckStatus)])] = &[
        (
            with(0, 0, None),
            &[(true, Success), (false, Failure), (true, Success)],
        ),
        (
            with(1, 1, None),
            &[(true, Success), (false, Failure), (true, Success)],
        ),
        (
            with(2, 3, None),
            &[
                (true, Pending),
                (false, Pending),
                (true, Pending),
                (true, Success),
                (false, Success),
                (false, Success),
                (false, Failure),
                (true, Failure),
                (true, Success),
            ],
        ),
        (
            with(2, 2, Some(InitialStatus::Passing)),
            &[(false, Success), (false, Failure)],
        ),
        (
            with(2, 2, Some(InitialStatus::Critical)),
            &[(true, Failure), (true, Success)],
        ),
        (with(0, 0, Some(InitialStatus::Warning)), &[(true, Success)]),
    ];
    for (number, (check, results)) in cases.iter().enumerate() {
        let mut play = Play::running(checked(check.clone()));
        for (step, (passed, want)) in results.iter().enumerate() {
            play.result(*passed);
            assert_eq!(
                play.check_status(),
                Some(*want),
                "case {number}, result {step}"
            );
        }
    }
}

#[test]
fn consul_counts_its_results_itself() {
    let check = ServiceCheck {
        success_before_passing: 3,
        failures_before_critical: 3,
        ..check()
    };
    let spec = service().with("web", Role::Main);
    let spec = spec.edit("web", |task| {
        task.services = with_check(check.clone());
        task.services[0].provider = Provider::Consul;
    });
    let mut play = Play::running(spec);
    play.result(true);
    assert_eq!(play.check_status(), Some(CheckStatus::Success));
    play.result(false);
    assert_eq!(play.check_status(), Some(CheckStatus::Failure));
}

#[test]
fn checks_are_watched_while_their_services_are_registered() {
    let mut play = Play::new(checked(check()));
    play.send(Event::Begin);
    play.send(Event::PrerunDone(Ok(())));
    assert_eq!(play.check_status(), None);
    play.started("web", 1);
    assert_eq!(play.check_status(), Some(CheckStatus::Pending));
    play.result(true);
    play.exited("web", 1, 1);
    assert_eq!(play.check_status(), None);
    play.pass(seconds(20));
    play.started("web", 2);
    assert_eq!(
        play.check_status(),
        Some(CheckStatus::Pending),
        "a new watch"
    );
    play.send(Event::Stop { skip_delays: false });
    assert_eq!(play.check_status(), None);
}

#[test]
fn a_late_result_of_an_earlier_watch_changes_nothing() {
    let mut play = Play::running(checked(check()));
    let (key, epoch) = {
        let (key, watched) = play.runner.checks().next().unwrap();
        (key.clone(), watched.epoch)
    };
    play.exited("web", 1, 1);
    play.pass(seconds(20));
    play.started("web", 2);
    let result = CheckResult {
        outcome: CheckOutcome::Passed,
        ..CheckResult::default()
    };
    play.send(Event::Checked { key, epoch, result });
    assert_eq!(play.check_status(), Some(CheckStatus::Pending));
}

#[test]
fn a_check_that_changes_in_place_starts_anew() {
    let mut play = Play::running(checked(check()));
    play.result(true);
    play.send(Event::Update(Box::new(checked(check()))));
    assert_eq!(play.check_status(), Some(CheckStatus::Success));
    let slower = ServiceCheck {
        interval: seconds(20),
        ..check()
    };
    play.send(Event::Update(Box::new(checked(slower))));
    assert_eq!(play.check_status(), Some(CheckStatus::Pending));
}

#[test]
fn an_allocation_is_healthy_once_its_checks_have_passed_for_min_healthy_time() {
    let mut play = Play::running(checked(check()).with_health(10, 300));
    play.pass(seconds(20));
    assert_eq!(play.verdict(), None, "pending");
    play.result(false);
    play.pass(seconds(20));
    assert_eq!(play.verdict(), None, "failing");
    play.result(true);
    play.pass(seconds(5));
    play.result(false);
    play.pass(seconds(1));
    play.result(true);
    play.pass(Duration::from_millis(9_999));
    assert_eq!(play.verdict(), None, "passing for less than 10 s");
    play.pass(Duration::from_millis(1));
    assert_eq!(play.verdict(), Some(true));
}

#[test]
fn checks_do_not_count_where_the_job_says_so() {
    let ignored = ServiceCheck {
        on_update: OnUpdate::Ignore,
        ..check()
    };
    let mut play = Play::running(checked(ignored).with_health(10, 300));
    play.result(false);
    play.pass(seconds(10));
    assert_eq!(play.verdict(), Some(true));
    let mut spec = checked(check()).with_health(10, 300);
    spec.health.as_mut().unwrap().checks = false;
    let mut play = Play::running(spec);
    play.result(false);
    play.pass(seconds(10));
    assert_eq!(play.verdict(), Some(true), "task_states");
}

#[test]
fn a_check_that_never_passes_is_the_reason_at_the_deadline() {
    let mut play = Play::running(checked(check()).with_health(10, 30));
    play.result(false);
    play.pass(seconds(30));
    assert_eq!(play.verdict(), Some(false));
    let event = play.last_event("web");
    assert_eq!(event.event_type, "Alloc Unhealthy");
    assert_eq!(
        event.message,
        "Service check \"alive\" not passing by healthy_deadline of 30s"
    );
}

#[test]
fn a_service_is_as_healthy_as_its_worst_check_and_each_change_is_reported() {
    use CheckOutcome::{Failed, Passed, Warned};
    use model::ServiceHealth::{Failing, Passing, Pending};
    let mut spec = checked(check());
    spec.group.services = with_check(check());
    let mut service = spec.group.services[0].clone();
    service.checks.push(check());
    spec.group.services.push(service);
    let mut play = Play::running(spec);
    let health = |play: &Play, position| play.runner.service_health(&ServiceOwner::Group, position);
    let keys: Vec<(CheckKey, u64)> = play
        .runner
        .checks()
        .filter(|(key, _)| key.owner == ServiceOwner::Group)
        .map(|(key, watched)| (key.clone(), watched.epoch))
        .collect();
    let mut result = |number: usize, outcome| {
        let (key, epoch) = keys[number].clone();
        let result = CheckResult {
            outcome,
            ..CheckResult::default()
        };
        let before = play.runner.client().modify_time;
        play.now.wall = play.now.wall.plus(seconds(1));
        play.send(Event::Checked { key, epoch, result });
        let is_reported = play.runner.client().modify_time != before;
        (health(&play, 0), health(&play, 1), is_reported)
    };
    assert_eq!(result(0, Passed), (Passing, Pending, true));
    assert_eq!(result(0, Warned), (Passing, Pending, false));
    assert_eq!(result(1, Passed), (Passing, Pending, false));
    assert_eq!(result(2, Passed), (Passing, Passing, true));
    assert_eq!(result(1, Failed), (Passing, Failing, true));
    assert_eq!(result(2, Failed), (Passing, Failing, false));
    assert_eq!(result(1, Passed), (Passing, Failing, false));
    assert_eq!(result(2, Passed), (Passing, Passing, true));
}

#[test]
fn a_warning_counts_as_a_failure_unless_the_job_ignores_warnings() {
    for (on_update, is_healthy) in [
        (OnUpdate::RequireHealthy, None),
        (OnUpdate::IgnoreWarnings, Some(true)),
    ] {
        let check = ServiceCheck {
            on_update,
            ..check()
        };
        let mut play = Play::running(checked(check).with_health(10, 300));
        play.outcome(CheckOutcome::Warned);
        assert_eq!(play.check_status(), Some(CheckStatus::Warning));
        play.pass(seconds(5));
        // Success and warning in turn: healthy since the first.
        play.result(true);
        play.outcome(CheckOutcome::Warned);
        play.pass(seconds(5));
        assert_eq!(play.verdict(), is_healthy, "{on_update:?}");
    }
    for ignore_warnings in [false, true] {
        let check = ServiceCheck {
            check_restart: Some(CheckRestart {
                limit: 1,
                grace: seconds(0),
                ignore_warnings,
            }),
            ..check()
        };
        let mut play = Play::running(checked(check));
        let effects = play.outcome(CheckOutcome::Warned);
        let stops = effects.iter().any(|it| it.starts_with("stop"));
        assert_eq!(stops, !ignore_warnings, "{effects:?}");
    }
}

fn restarting(limit: u32, grace: u64) -> ServiceCheck {
    ServiceCheck {
        check_restart: Some(CheckRestart {
            limit,
            grace: seconds(grace),
            ignore_warnings: false,
        }),
        ..check()
    }
}

/// Plays a failing check every 10 s, the first at 5 s; returns the second of the kill.
fn second_of_kill(play: &mut Play, limit: u64) -> Option<u64> {
    for second in 1..=limit {
        let mut effects = play.pass(seconds(1));
        if second % 10 == 5 && play.check_status().is_some() {
            effects.extend(play.result(false));
        }
        if effects.iter().any(|it| it.starts_with("stop")) {
            return Some(second);
        }
    }
    None
}

#[test]
fn scenario_054_a_check_that_keeps_failing_restarts_its_task() {
    let mut play = Play::running(checked(restarting(3, 5)));
    // Grace 5 s, the first failure at 5 s, and 20 s more.
    assert_eq!(second_of_kill(&mut play, 60), Some(25));
    let event = play.signaled("web");
    assert_eq!(event.message, "healthcheck: check \"alive\" unhealthy");
    // The restart takes one attempt of the policy, with its delay.
    play.exited("web", 1, 0);
    let event = play.last_event("web");
    assert_eq!(event.details["restart_reason"], "Restart within policy");
    play.pass(seconds(20));
    play.started("web", 2);
    // The grace time begins again.
    assert_eq!(second_of_kill(&mut play, 60), Some(25));
    play.exited("web", 2, 0);
    play.pass(seconds(20));
    play.started("web", 3);
    assert_eq!(second_of_kill(&mut play, 60), Some(25));
    play.exited("web", 3, 0);
    assert_eq!(
        play.runner.client().status,
        ClientStatus::Failed,
        "two attempts, no third"
    );
}

#[test]
fn a_task_that_ends_well_when_its_check_stops_it_is_restarted_as_after_a_failure() {
    let spec = checked(restarting(1, 0));
    let mut play = Play::running(spec.edit("web", |task| task.restart_on_success = false));
    play.result(false);
    play.exited("web", 1, 0);
    let event = play.last_event("web");
    assert_eq!(event.details["restart_reason"], "Restart within policy");
}

#[test]
fn failures_in_the_grace_time_do_not_count() {
    let mut play = Play::running(checked(restarting(1, 30)));
    // Failures at 5, 15 and 25 s, the first that counts at 35 s.
    assert_eq!(second_of_kill(&mut play, 60), Some(35));
}

#[test]
fn a_success_begins_the_row_again() {
    let mut play = Play::running(checked(restarting(2, 0)));
    play.result(false);
    play.pass(seconds(9));
    play.result(true);
    play.pass(seconds(1));
    assert_eq!(play.check_status(), Some(CheckStatus::Success));
    let effects = play.result(false);
    assert!(
        !effects.iter().any(|it| it.starts_with("stop")),
        "{effects:?}"
    );
    let effects = play.pass(seconds(10));
    assert!(
        effects.iter().any(|it| it.starts_with("stop")),
        "{effects:?}"
    );
}

#[test]
fn without_a_limit_nothing_restarts() {
    for check in [check(), restarting(0, 0)] {
        let mut play = Play::running(checked(check));
        assert_eq!(second_of_kill(&mut play, 120), None);
    }
}

#[test]
fn a_check_of_the_group_restarts_its_task_or_all_of_them() {
    for (task, want) in [("web", &["web"][..]), ("", &["db", "web"][..])] {
        let mut spec = service().with("web", Role::Main).with("db", Role::Main);
        spec.group.services = with_check(ServiceCheck {
            task: task.to_owned(),
            ..restarting(1, 0)
        });
        let mut play = Play::running(spec);
        assert_eq!(
            play.runner.checks().next().unwrap().0,
            &key(ServiceOwner::Group)
        );
        let effects = play.result(false);
        let stopped: Vec<&str> = effects
            .iter()
            .filter_map(|it| it.strip_prefix("stop "))
            .map(|it| it.split(' ').next().unwrap())
            .collect();
        assert_eq!(stopped, want);
    }
}

#[test]
fn a_task_that_is_being_restarted_is_not_healthy() {
    let mut play = Play::running(checked(restarting(1, 0)).with_health(10, 300));
    play.pass(seconds(60));
    assert_eq!(play.verdict(), None);
    play.result(false);
    assert_eq!(play.check_status(), None, "its services are out");
    play.pass(seconds(1));
    assert_eq!(play.verdict(), None);
}
