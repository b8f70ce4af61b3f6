//! Restarts: by policy, on request, and after an update of the policy.

use super::*;

/// Plays `ends` exit codes one after the other; returns the second at which each run began.
fn run_times(spec: AllocSpec, codes: &[i32]) -> (Play, Vec<u64>) {
    let (mut play, _) = Play::begun(spec);
    let begin = play.wall();
    let mut times = Vec::new();
    for (position, code) in codes.iter().enumerate() {
        let attempt = u32::try_from(position + 1).unwrap();
        if play.phase("main") == TaskPhase::Dead {
            break;
        }
        times.push(play.wall().since(begin).as_secs());
        play.started("main", attempt);
        play.jump(seconds(1));
        play.exited("main", attempt, *code);
        while play.phase("main") == TaskPhase::Pending {
            if !play.pass(seconds(1)).is_empty() {
                break;
            }
        }
    }
    (play, times)
}

#[test]
fn scenario_039_two_attempts_are_three_runs() {
    let (play, times) = run_times(service().with("main", Role::Main), &[1; 10]);
    assert_eq!(times.len(), 3);
    for pair in times.windows(2) {
        assert!((15..=20).contains(&(pair[1] - pair[0])), "{times:?}");
    }
    assert_eq!(play.status(), ClientStatus::Failed);
    assert_eq!(play.last_event("main").event_type, "Not Restarting");
    assert_eq!(play.last_event("main").details["fails_task"], "true");
    assert_eq!(play.runner.client().task_states["main"].restarts, 2);
}

#[test]
fn scenario_040_mode_delay_waits_for_the_next_window_and_never_fails() {
    let spec = service().with("main", Role::Main).edit("main", |task| {
        task.restart.mode = RestartMode::Delay;
        task.restart.interval = seconds(600);
    });
    let (play, times) = run_times(spec, &[1; 6]);
    assert_eq!(times.len(), 6);
    assert_eq!(times[3], 600, "{times:?}");
    assert!(!play.has_failed("main"));
}

#[test]
fn scenario_041_a_services_success_costs_an_attempt() {
    let (play, times) = run_times(service().with("main", Role::Main), &[0; 10]);
    assert_eq!(times.len(), 3);
    assert_eq!(play.status(), ClientStatus::Failed);
}

#[test]
fn scenario_042_batch_ends_with_success_and_fails_after_its_attempts() {
    let (play, times) = run_times(batch().with("main", Role::Main), &[0; 10]);
    assert_eq!((times.len(), play.status()), (1, ClientStatus::Complete));
    let spec = batch()
        .with("main", Role::Main)
        .edit("main", |task| task.restart.attempts = 3);
    let (play, times) = run_times(spec, &[1; 10]);
    assert_eq!((times.len(), play.status()), (4, ClientStatus::Failed));
}

#[test]
fn scenario_043_restarts_on_request_cost_no_attempt() {
    let mut play = Play::running(service().with("main", Role::Main));
    for attempt in 1..=10 {
        let reason = "template changed".to_owned();
        let scope = model::RestartScope::Running;
        let effects = play.send(Event::Restart { scope, reason });
        assert_eq!(effects, [format!("stop main {attempt} 5s")]);
        assert_eq!(
            play.exited("main", attempt, 137),
            [format!("forget main {attempt}")]
        );
        assert_eq!(
            play.pass(Duration::ZERO),
            [format!("start main {}", attempt + 1)]
        );
        play.started("main", attempt + 1);
    }
    play.exited("main", 11, 1);
    assert_eq!(
        play.phase("main"),
        TaskPhase::Pending,
        "the first attempt of two"
    );
}

#[test]
fn scenario_044_a_policy_changed_in_place_counts_from_then_on() {
    let (mut play, _) = Play::begun(service().with("main", Role::Main));
    let more = service()
        .with("main", Role::Main)
        .edit("main", |task| task.restart.attempts = 5);
    play.send(Event::Update(Box::new(more)));
    let mut runs = 0;
    while play.phase("main") != TaskPhase::Dead {
        runs += 1;
        play.started("main", runs);
        play.exited("main", runs, 1);
        play.pass(seconds(20));
    }
    assert_eq!(runs, 6);
}

#[test]
fn an_update_neither_adds_nor_drops_tasks() {
    let mut play = Play::running(service().with("one", Role::Main).with("two", Role::Main));
    play.send(Event::Update(Box::new(
        service().with("one", Role::Main).with("three", Role::Main),
    )));
    assert_eq!(play.stop(), ["stop one 1 5s", "stop two 1 5s"]);
}

#[test]
fn a_start_that_cannot_succeed_is_not_tried_again() {
    let (mut play, _) = Play::begun(service().with("main", Role::Main));
    assert_eq!(
        play.start_failed("main", 1, false),
        ["ended", "forget main 1"]
    );
    assert_eq!(play.status(), ClientStatus::Failed);
    let want = ["Received", "Task Setup", "Driver Failure", "Not Restarting"];
    assert_eq!(play.events("main"), want);

    let (mut play, _) = Play::begun(service().with("main", Role::Main));
    assert_eq!(play.start_failed("main", 1, true), ["forget main 1"]);
    assert_eq!(play.pass(seconds(20)), ["start main 2"]);
}

#[test]
fn restarting_one_task_leaves_the_others_alone_and_the_dead_dead() {
    let mut play = Play::running(batch().with("one", Role::Main).with("two", Role::Main));
    let one = model::RestartScope::Task("one".to_owned());
    let event = Event::Restart {
        scope: one,
        reason: "asked".to_owned(),
    };
    assert_eq!(play.send(event.clone()), ["stop one 1 5s"]);
    assert!(play.send(event.clone()).is_empty(), "it is on its way");
    play.exited("one", 1, 0);
    play.pass(Duration::ZERO);
    play.started("one", 2);
    play.exited("one", 2, 0);
    assert!(play.send(event).is_empty(), "dead");
}

#[test]
fn restarting_all_begins_with_the_prestart_tasks() {
    let mut play = Play::running(
        service()
            .with("init", Role::Prestart)
            .with("main", Role::Main),
    );
    play.exited("init", 1, 0);
    play.started("main", 1);
    let event = Event::Restart {
        scope: model::RestartScope::All,
        reason: "asked".to_owned(),
    };
    assert_eq!(play.send(event), ["start init 2", "stop main 1 5s"]);
    assert_eq!(play.exited("main", 1, 0), ["forget main 1"]);
    assert!(play.pass(seconds(60)).is_empty(), "main waits");
    play.started("init", 2);
    assert_eq!(play.exited("init", 2, 0), ["forget init 2", "start main 2"]);
}

#[test]
fn a_stop_overtakes_a_restart() {
    let mut play = Play::running(service().with("main", Role::Main));
    let scope = model::RestartScope::Running;
    play.send(Event::Restart {
        scope,
        reason: "asked".to_owned(),
    });
    assert!(
        play.stop().is_empty(),
        "the process is being stopped already"
    );
    assert_eq!(play.exited("main", 1, 0), ["ended", "forget main 1"]);
}

/// Returns the tasks that a restart affects, or the refusal's text.
fn restartable(play: &Play, scope: model::RestartScope) -> Result<Vec<String>, String> {
    play.runner
        .restartable(&scope)
        .map_err(|refusal| refusal.to_string())
}

#[test]
fn a_requested_restart_names_its_tasks_or_the_reason_against_it() {
    use model::RestartScope::{All, Running, Task};
    let task = |name: &str| Task(name.to_owned());
    let spec = service()
        .with("init", Role::Prestart)
        .with("main", Role::Main);
    let mut play = Play::running(spec);
    assert_eq!(restartable(&play, Running).unwrap(), ["init"]);
    let waiting = restartable(&play, task("main")).unwrap_err();
    assert!(waiting.contains("\"main\" is not running"), "{waiting}");
    let unknown = restartable(&play, task("db")).unwrap_err();
    assert!(unknown.contains("want one of init, main"), "{unknown}");
    play.exited("init", 1, 0);
    assert!(restartable(&play, Running).unwrap_err().contains("no task"));
    play.started("main", 1);
    assert_eq!(restartable(&play, Running).unwrap(), ["main"]);
    assert_eq!(restartable(&play, All).unwrap(), ["init", "main"]);
    play.stop();
    for scope in [Running, All, task("main")] {
        let ending = restartable(&play, scope.clone()).unwrap_err();
        assert!(ending.contains("is ending"), "{scope:?}: {ending}");
    }
}

#[test]
fn only_a_running_task_has_a_process_to_run_a_command_beside() {
    let spec = service()
        .with("init", Role::Prestart)
        .with("main", Role::Main);
    let mut play = Play::running(spec);
    let said = |play: &Play, task: &str| {
        let found = play.runner.running_attempt(task);
        found.map_err(|refusal| refusal.to_string())
    };
    assert_eq!(said(&play, "init"), Ok(1));
    let waiting = said(&play, "main").unwrap_err();
    assert!(
        waiting.contains("\"main\" has not started yet"),
        "{waiting}"
    );
    let unknown = said(&play, "db").unwrap_err();
    assert!(unknown.contains("want one of init, main"), "{unknown}");
    play.exited("init", 1, 0);
    play.started("main", 1);
    assert_eq!(said(&play, "main"), Ok(1));
    let ended = said(&play, "init").unwrap_err();
    assert!(ended.contains("\"init\" is not running"), "{ended}");
    play.stop();
    assert!(said(&play, "main").unwrap_err().contains("not running"));
}

#[test]
fn a_signal_is_an_event_of_its_task_and_changes_nothing_else() {
    let (mut play, _) = Play::begun(service().with("main", Role::Main));
    play.started("main", 1);
    let event = Event::Signaling {
        task: "main".to_owned(),
        signal: "SIGHUP".to_owned(),
    };
    assert!(play.send(event).is_empty());
    let last = play.last_event("main");
    assert_eq!(last.event_type, "Signaling");
    assert_eq!(last.details["signal"], "SIGHUP");
    assert_eq!(play.phase("main"), TaskPhase::Running);
}
