//! Main tasks that wait until the checks of a prestart sidecar pass.

use model::service::{CheckType, InitialStatus, ServiceCheck};
use model::{Service, ServiceOwner};

use super::*;
use crate::{CheckKey, CheckOutcome, CheckResult};

fn check() -> ServiceCheck {
    ServiceCheck {
        name: "ready".to_owned(),
        check_type: CheckType::Http,
        interval: seconds(10),
        timeout: seconds(2),
        ..ServiceCheck::default()
    }
}

fn services(check: ServiceCheck) -> Vec<Service> {
    vec![Service {
        name: "proxy".to_owned(),
        checks: vec![check],
        ..Service::default()
    }]
}

/// A main task, and an awaited sidecar with one check.
fn awaited(check: ServiceCheck) -> AllocSpec {
    let spec = service()
        .with("main", Role::Main)
        .with("proxy", Role::PrestartSidecar);
    spec.edit("proxy", |task| {
        task.services = services(check);
        task.is_awaited = true;
    })
}

/// The same with the check in a service of the group, which stays registered while the sidecar restarts.
fn awaited_by_group() -> AllocSpec {
    let mut spec = awaited(check()).edit("proxy", |task| task.services.clear());
    spec.group.services = services(ServiceCheck {
        task: "proxy".to_owned(),
        ..check()
    });
    spec
}

impl Play {
    /// Sends a result of the first check of this owner.
    fn checked(&mut self, owner: ServiceOwner, outcome: CheckOutcome) -> Vec<String> {
        let key = CheckKey {
            owner,
            service: 0,
            check: 0,
        };
        let found = self.runner.checks().find(|(known, _)| **known == key);
        let epoch = found.expect("the check is watched").1.epoch;
        let result = CheckResult {
            outcome,
            ..CheckResult::default()
        };
        self.send(Event::Checked { key, epoch, result })
    }

    fn proxy_checked(&mut self, outcome: CheckOutcome) -> Vec<String> {
        self.checked(ServiceOwner::Task("proxy".to_owned()), outcome)
    }
}

#[test]
fn a_main_task_starts_once_the_check_of_its_sidecar_passes() {
    let (mut play, effects) = Play::begun(awaited(check()));
    assert_eq!(effects, ["start proxy 1"]);
    assert!(play.started("proxy", 1).is_empty());
    assert!(play.proxy_checked(CheckOutcome::Failed).is_empty());
    assert_eq!(play.phase("main"), TaskPhase::Pending);
    let last = play.last_event("main");
    assert_eq!(last.event_type, "Waiting for sidecars");
    assert_eq!(last.message, "Waiting for the checks of proxy to pass");
    assert_eq!(last.details["sidecars"], "proxy");
    assert_eq!(play.proxy_checked(CheckOutcome::Passed), ["start main 1"]);
    assert_eq!(
        play.events("main"),
        ["Received", "Waiting for sidecars", "Task Setup"]
    );
    play.started("main", 1);
    assert!(play.proxy_checked(CheckOutcome::Failed).is_empty());
    assert_eq!(play.phase("main"), TaskPhase::Running, "the gate is passed");
}

#[test]
fn an_initial_status_is_not_a_result() {
    let passing = ServiceCheck {
        initial_status: Some(InitialStatus::Passing),
        ..check()
    };
    let (mut play, _) = Play::begun(awaited(passing));
    assert!(play.started("proxy", 1).is_empty());
    assert_eq!(play.proxy_checked(CheckOutcome::Passed), ["start main 1"]);
}

#[test]
fn a_sidecar_that_dies_is_restarted_and_awaited_further() {
    let (mut play, _) = Play::begun(awaited(check()));
    play.started("proxy", 1);
    assert_eq!(play.exited("proxy", 1, 1), ["forget proxy 1"]);
    assert_eq!(play.pass(seconds(20)), ["start proxy 2"]);
    assert!(play.started("proxy", 2).is_empty());
    assert_eq!(play.proxy_checked(CheckOutcome::Passed), ["start main 1"]);
    let waits = play.events("main");
    let waits = waits.iter().filter(|it| *it == "Waiting for sidecars");
    assert_eq!(waits.count(), 1, "the wait is one event");
}

#[test]
fn a_result_of_an_earlier_process_does_not_count() {
    let mut spec = awaited_by_group().with("init", Role::Prestart);
    spec.group.services[0].checks[0].failures_before_critical = 3;
    let (mut play, _) = Play::begun(spec);
    play.started("init", 1);
    play.started("proxy", 1);
    play.checked(ServiceOwner::Group, CheckOutcome::Passed);
    play.jump(seconds(1));
    play.exited("proxy", 1, 1);
    play.pass(seconds(20));
    play.started("proxy", 2);
    assert_eq!(play.exited("init", 1, 0), ["forget init 1"]);
    let failed = play.checked(ServiceOwner::Group, CheckOutcome::Failed);
    assert!(failed.is_empty(), "{failed:?}");
    let passed = play.checked(ServiceOwner::Group, CheckOutcome::Passed);
    assert_eq!(passed, ["start main 1"]);
}

#[test]
fn a_sidecar_that_gives_up_ends_the_allocation() {
    let (mut play, _) = Play::begun(awaited(check()).no_restarts());
    play.started("proxy", 1);
    play.exited("proxy", 1, 1);
    assert_eq!(play.status(), ClientStatus::Failed);
    assert_eq!(play.phase("main"), TaskPhase::Dead);
}

#[test]
fn every_awaited_sidecar_must_pass_and_events_name_the_rest() {
    let spec = awaited(check()).with("vpn", Role::PrestartSidecar);
    let spec = spec.edit("vpn", |task| {
        task.services = services(check());
        task.is_awaited = true;
    });
    let (mut play, _) = Play::begun(spec);
    play.started("proxy", 1);
    play.started("vpn", 1);
    assert_eq!(play.last_event("main").details["sidecars"], "proxy, vpn");
    assert!(play.proxy_checked(CheckOutcome::Passed).is_empty());
    assert_eq!(play.last_event("main").details["sidecars"], "vpn");
    let vpn = ServiceOwner::Task("vpn".to_owned());
    let passed = play.checked(vpn, CheckOutcome::Passed);
    assert_eq!(passed, ["start main 1"]);
}

#[test]
fn the_wait_goes_on_after_a_restart_of_the_agent() {
    let recovered = |task: &str| Event::Recovered {
        task: task.to_owned(),
        attempt: 1,
    };
    let (mut play, _) = Play::begun(awaited(check()));
    play.started("proxy", 1);
    let mut play = play.restarted(Boot::Same);
    assert_eq!(play.send(Event::Begin), ["prerun again", "recover proxy 1"]);
    play.send(Event::PrerunDone(Ok(())));
    assert!(play.send(recovered("proxy")).is_empty());
    let waits = play.events("main");
    let waits = waits.iter().filter(|it| *it == "Waiting for sidecars");
    assert_eq!(waits.count(), 1, "the event is stored");
    assert_eq!(play.proxy_checked(CheckOutcome::Passed), ["start main 1"]);
    play.started("main", 1);

    let mut play = play.restarted(Boot::Same);
    play.send(Event::Begin);
    play.send(Event::PrerunDone(Ok(())));
    play.send(recovered("proxy"));
    play.send(recovered("main"));
    assert_eq!(play.exited("main", 1, 1), ["forget main 1"]);
    let again = play.pass(seconds(20));
    assert_eq!(again, ["start main 2"], "a started task waits no more");
}

#[test]
fn a_state_of_an_earlier_version_is_read() {
    let (play, _) = Play::begun(awaited(check()));
    let mut stored = serde_json::to_value(play.runner.state()).unwrap();
    stored.as_object_mut().unwrap().remove("announced").unwrap();
    let state: crate::AllocState = serde_json::from_value(stored).unwrap();
    assert!(state.has_begun());
}

#[test]
fn a_restart_of_all_tasks_waits_again() {
    let (mut play, _) = Play::begun(awaited(check()));
    play.started("proxy", 1);
    play.proxy_checked(CheckOutcome::Passed);
    play.started("main", 1);
    play.jump(seconds(1));
    play.send(Event::Restart {
        scope: model::RestartScope::All,
        reason: "asked".to_owned(),
    });
    play.exited("main", 1, 0);
    play.exited("proxy", 1, 0);
    assert_eq!(play.pass(seconds(1)), ["start proxy 2"]);
    assert!(play.started("proxy", 2).is_empty());
    assert_eq!(play.proxy_checked(CheckOutcome::Passed), ["start main 2"]);
}
