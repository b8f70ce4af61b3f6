//! Kill order of tasks, and tasks that cannot be killed.

use super::*;

fn leader(task: &mut TaskSpec) {
    task.leader = true;
}

#[test]
fn a_stopped_task_is_killed_and_has_not_failed() {
    let mut play = Play::running(service().with("web", Role::Main));
    assert_eq!(play.stop(), ["stop web 1 5s"]);
    assert_eq!(
        play.status(),
        ClientStatus::Running,
        "it runs until it is dead"
    );
    assert_eq!(play.exited("web", 1, 137), ["ended", "forget web 1"]);
    assert_eq!(play.status(), ClientStatus::Complete);
    assert!(!play.has_failed("web"));
    let want = [
        "Received",
        "Task Setup",
        "Started",
        "Killing",
        "Terminated",
        "Killed",
    ];
    assert_eq!(play.events("web"), want);
}

#[test]
fn a_task_that_a_hook_fails_is_stopped_and_not_restarted() {
    let failed = |attempt| Event::Failed {
        task: "web".to_owned(),
        attempt,
        reason: "the script failed".to_owned(),
    };
    let mut play = Play::running(service().with("web", Role::Main));
    assert!(play.send(failed(2)).is_empty(), "of another attempt");
    assert_eq!(play.send(failed(1)), ["stop web 1 5s"]);
    assert!(play.send(failed(1)).is_empty(), "it is being stopped");
    play.exited("web", 1, 0);
    assert_eq!(play.status(), ClientStatus::Failed);
    let want = [
        "Received",
        "Task Setup",
        "Started",
        "Not Restarting",
        "Killing",
        "Terminated",
        "Killed",
    ];
    assert_eq!(play.events("web"), want);
}

#[test]
fn a_second_stop_changes_nothing() {
    let mut play = Play::running(service().with("web", Role::Main));
    play.stop();
    assert!(play.stop().is_empty());
    play.exited("web", 1, 0);
    assert!(play.stop().is_empty());
}

#[test]
fn a_task_that_never_started_is_dead_at_once() {
    let mut play = Play::new(service().with("web", Role::Main));
    play.send(Event::Begin);
    assert_eq!(play.stop(), ["ended"]);
    assert_eq!(play.status(), ClientStatus::Complete);
    assert_eq!(
        play.runner.client().task_states["web"].finished_at,
        WALL_START
    );
    assert!(play.send(Event::PrerunDone(Ok(()))).is_empty());
}

#[test]
fn a_start_under_way_is_cancelled_or_stopped_when_it_has_come_through() {
    let (mut play, _) = Play::begun(service().with("web", Role::Main));
    assert_eq!(play.stop(), ["cancel start web 1"]);
    assert_eq!(play.started("web", 1), ["stop web 1 5s"]);
    assert_eq!(play.exited("web", 1, 0), ["ended", "forget web 1"]);

    let (mut play, _) = Play::begun(service().with("web", Role::Main));
    play.stop();
    assert_eq!(play.start_failed("web", 1, true), ["ended", "forget web 1"]);
    assert_eq!(play.status(), ClientStatus::Complete);
}

#[test]
fn a_task_that_waits_to_restart_is_dead_at_once() {
    let mut play = Play::running(service().with("web", Role::Main));
    play.exited("web", 1, 1);
    assert_eq!(play.stop(), ["ended"]);
    assert!(play.pass(seconds(60)).is_empty());
}

#[test]
fn scenario_048_delays_add_up_and_can_be_skipped() {
    let spec = || {
        service()
            .with_delay(seconds(5))
            .with("web", Role::Main)
            .edit("web", |task| task.shutdown_delay = seconds(3))
    };
    let mut play = Play::running(spec());
    assert!(play.stop().is_empty());
    assert!(play.pass(Duration::from_millis(7_999)).is_empty());
    assert_eq!(
        play.last_event("web").event_type,
        "Waiting for shutdown delay"
    );
    assert_eq!(play.status(), ClientStatus::Running);
    assert_eq!(play.pass(Duration::from_millis(1)), ["stop web 1 5s"]);

    let mut play = Play::running(spec());
    assert_eq!(
        play.send(Event::Stop { skip_delays: true }),
        ["stop web 1 5s"]
    );
    assert!(
        play.events("web")
            .contains(&"Skipping shutdown delay".to_owned())
    );

    let mut play = Play::running(spec());
    play.stop();
    play.pass(seconds(6));
    assert_eq!(
        play.send(Event::Stop { skip_delays: true }),
        ["stop web 1 5s"]
    );
}

#[test]
fn an_exit_during_the_delay_ends_it() {
    let spec = service()
        .with("web", Role::Main)
        .edit("web", |task| task.shutdown_delay = seconds(30));
    let mut play = Play::running(spec);
    play.stop();
    assert_eq!(play.exited("web", 1, 0), ["ended", "forget web 1"]);
}

#[test]
fn the_leader_dies_first_and_sidecars_last() {
    let spec = service()
        .with("lead", Role::Main)
        .edit("lead", leader)
        .with("other", Role::Main)
        .with("proxy", Role::PrestartSidecar)
        .with("clean", Role::Poststop);
    let mut play = Play::running(spec);
    play.started("lead", 1);
    play.started("other", 1);
    assert_eq!(play.stop(), ["stop lead 1 5s"]);
    assert_eq!(
        play.exited("lead", 1, 0),
        ["forget lead 1", "stop other 1 5s"]
    );
    assert_eq!(
        play.exited("other", 1, 0),
        ["forget other 1", "stop proxy 1 5s"]
    );
    assert_eq!(
        play.exited("proxy", 1, 0),
        ["forget proxy 1", "start clean 1"]
    );
}

#[test]
fn scenario_049_the_leaders_end_ends_its_followers() {
    let spec = batch()
        .with("web", Role::Main)
        .edit("web", leader)
        .with("shipper", Role::PoststartSidecar);
    let mut play = Play::running(spec);
    play.started("shipper", 1);
    assert_eq!(
        play.exited("web", 1, 0),
        ["forget web 1", "stop shipper 1 5s"]
    );
    assert!(
        play.events("shipper")
            .contains(&"Leader Task Dead".to_owned())
    );
    assert_eq!(
        play.exited("shipper", 1, 130),
        ["ended", "forget shipper 1"]
    );
    assert_eq!(play.status(), ClientStatus::Complete);
}

#[test]
fn a_failed_leader_is_a_failed_sibling() {
    let spec = batch()
        .with("web", Role::Main)
        .edit("web", leader)
        .with("other", Role::Main)
        .no_restarts();
    let mut play = Play::running(spec);
    assert_eq!(
        play.exited("web", 1, 1),
        ["forget web 1", "stop other 1 5s"]
    );
    assert_eq!(play.status(), ClientStatus::Failed);
    let events = play.events("other");
    assert!(
        events.contains(&"Sibling Task Failed".to_owned()),
        "{events:?}"
    );
}

#[test]
fn a_failed_task_takes_its_siblings_along() {
    let spec = service()
        .with("one", Role::Main)
        .with("two", Role::Main)
        .no_restarts();
    let mut play = Play::running(spec);
    assert_eq!(play.exited("one", 1, 1), ["forget one 1", "stop two 1 5s"]);
    play.exited("two", 1, 0);
    assert_eq!(play.status(), ClientStatus::Failed);
    assert!(!play.has_failed("two"));
    let client = play.runner.client();
    let failure = client.task_states["two"]
        .events
        .iter()
        .find(|e| e.event_type == "Sibling Task Failed");
    assert_eq!(failure.unwrap().details["failed_sibling"], "one");
}

#[test]
fn a_crash_within_the_policy_does_not_affect_siblings() {
    let mut play = Play::running(service().with("one", Role::Main).with("two", Role::Main));
    assert_eq!(play.exited("one", 1, 1), ["forget one 1"]);
    assert_eq!(play.phase("two"), TaskPhase::Running);
    assert_eq!(play.status(), ClientStatus::Running);
}

#[test]
fn sidecars_end_with_the_main_tasks() {
    let mut play = Play::running(
        batch()
            .with("main", Role::Main)
            .with("proxy", Role::PrestartSidecar),
    );
    play.started("main", 1);
    assert_eq!(
        play.exited("main", 1, 0),
        ["forget main 1", "stop proxy 1 5s"]
    );
    assert!(play.events("proxy").contains(&"Main Tasks Dead".to_owned()));
}

#[test]
fn scenario_051_poststop_runs_after_a_stop_and_a_second_stop_spares_it() {
    let mut play = Play::running(
        service()
            .with("main", Role::Main)
            .with("clean", Role::Poststop),
    );
    assert_eq!(play.stop(), ["stop main 1 5s"]);
    assert_eq!(
        play.exited("main", 1, 0),
        ["forget main 1", "start clean 1"]
    );
    play.started("clean", 1);
    assert!(play.send(Event::Stop { skip_delays: true }).is_empty());
    assert_eq!(play.exited("clean", 1, 0), ["ended", "forget clean 1"]);
}

#[test]
fn scenario_047_a_stop_that_fails_is_tried_for_as_long_as_the_process_lives() {
    let mut play = Play::running(service().with("web", Role::Main));
    play.stop();
    for wait in [5, 20, 80, 120, 120, 120, 120] {
        let error = "process is in uninterruptible sleep".to_owned();
        let event = Event::StopFailed {
            task: "web".to_owned(),
            attempt: 1,
            error,
        };
        assert!(play.send(event).is_empty());
        assert_eq!(play.status(), ClientStatus::Running, "not told to be dead");
        assert!(
            play.pass(seconds(wait) - Duration::from_millis(1))
                .is_empty()
        );
        assert_eq!(play.pass(Duration::from_millis(1)), ["stop web 1 5s"]);
    }
    let counted = play
        .events("web")
        .iter()
        .filter(|event| *event == "Killing")
        .count();
    assert_eq!(counted, 4, "the request, and the first three failures");
    assert_eq!(play.exited("web", 1, 137), ["ended", "forget web 1"]);
}

#[test]
fn nothing_starts_again_during_the_groups_delay() {
    let spec = service().with_delay(seconds(60));
    let mut play = Play::running(spec.with("one", Role::Main).with("two", Role::Main));
    play.exited("one", 1, 1);
    play.stop();
    assert_eq!(play.pass(seconds(60)), ["stop two 1 5s"]);
    assert_eq!(play.phase("one"), TaskPhase::Dead);
}
