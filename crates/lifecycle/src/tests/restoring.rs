//! The agent is killed and started again, on the same boot or on another.

use super::*;

fn recovered(task: &str, attempt: u32) -> Event {
    Event::Recovered {
        task: task.to_owned(),
        attempt,
    }
}

fn lost(task: &str, attempt: u32) -> Event {
    let reason = "no such process".to_owned();
    Event::NotRecovered {
        task: task.to_owned(),
        attempt,
        reason,
    }
}

#[test]
fn scenario_022_a_task_found_again_shows_no_trace_of_it() {
    let play = Play::running(service().with("web", Role::Main));
    let before = play.runner.client();
    let mut play = play.restarted(Boot::Same);
    play.jump(seconds(20));
    assert_eq!(play.send(Event::Begin), ["prerun again", "recover web 1"]);
    assert!(play.send(Event::PrerunDone(Ok(()))).is_empty());
    assert!(play.send(recovered("web", 1)).is_empty());
    assert_eq!(play.runner.client(), before);
}

#[test]
fn scenario_023_an_exit_while_the_agent_was_down_counts_as_any_other() {
    let mut play = Play::running(service().with("web", Role::Main)).restarted(Boot::Same);
    play.send(Event::Begin);
    play.send(Event::PrerunDone(Ok(())));
    assert_eq!(play.exited("web", 1, 7), ["forget web 1"]);
    let events = play.events("web");
    assert_eq!(events[events.len() - 2..], ["Terminated", "Restarting"]);
    assert_eq!(play.pass(seconds(20)), ["start web 2"]);
}

#[test]
fn attempts_used_up_before_a_restart_stay_used_up() {
    let mut play = Play::running(service().with("web", Role::Main));
    for attempt in 1..=2 {
        play.exited("web", attempt, 1);
        play.pass(seconds(20));
        play.started("web", attempt + 1);
        play = play.restarted(Boot::Same);
        play.send(Event::Begin);
        play.send(Event::PrerunDone(Ok(())));
        play.send(recovered("web", attempt + 1));
    }
    play.exited("web", 3, 1);
    assert_eq!(play.status(), ClientStatus::Failed);
}

#[test]
fn a_delay_before_a_restart_is_kept() {
    let mut play = Play::running(service().with("web", Role::Main));
    play.exited("web", 1, 1);
    let mut play = play.restarted(Boot::Same);
    play.send(Event::Begin);
    assert!(play.send(Event::PrerunDone(Ok(()))).is_empty());
    assert!(play.pass(seconds(14)).is_empty());
    assert_eq!(play.pass(seconds(5)), ["start web 2"]);
}

#[test]
fn scenario_027_a_start_that_was_never_confirmed_is_looked_for_before_it_is_made_again() {
    let (play, _) = Play::begun(service().with("web", Role::Main));
    let mut play = play.restarted(Boot::Same);
    assert_eq!(play.send(Event::Begin), ["prerun again", "recover web 1"]);
    assert!(
        play.send(Event::PrerunDone(Ok(()))).is_empty(),
        "not before the answer"
    );
    assert_eq!(play.send(lost("web", 1)), ["forget web 1", "start web 2"]);

    let (play, _) = Play::begun(service().with("web", Role::Main));
    let mut play = play.restarted(Boot::Same);
    play.send(Event::Begin);
    play.send(Event::PrerunDone(Ok(())));
    assert!(play.send(recovered("web", 1)).is_empty());
    assert_eq!(play.status(), ClientStatus::Running);
    assert_eq!(play.last_event("web").event_type, "Started");
}

#[test]
fn scenario_030_after_a_reboot_a_service_waits_for_a_server_and_pays_no_attempt() {
    let mut play = Play::running(service().with("web", Role::Main)).restarted(Boot::New);
    assert_eq!(play.send(Event::Begin), ["prerun again", "recover web 1"]);
    play.send(Event::PrerunDone(Ok(())));
    assert_eq!(play.send(lost("web", 1)), ["forget web 1"]);
    assert_eq!(play.phase("web"), TaskPhase::Pending);
    assert_eq!(play.last_event("web").event_type, "Failed Restoring Task");
    assert!(play.pass(seconds(3600)).is_empty());
    assert_eq!(play.send(Event::ServersContacted), ["start web 2"]);
    assert_eq!(play.runner.client().task_states["web"].restarts, 0);
}

#[test]
fn scenario_031_what_was_placed_elsewhere_meanwhile_never_starts() {
    let mut play = Play::running(service().with("web", Role::Main)).restarted(Boot::New);
    play.send(Event::Begin);
    play.send(Event::PrerunDone(Ok(())));
    play.send(lost("web", 1));
    assert_eq!(play.stop(), ["ended"]);
    assert!(play.send(Event::ServersContacted).is_empty());
    assert_eq!(play.status(), ClientStatus::Complete);
}

#[test]
fn scenario_032_a_system_task_starts_without_a_server() {
    let mut play = Play::running(alloc(JobType::System).with("web", Role::Main));
    play = play.restarted(Boot::New);
    play.send(Event::Begin);
    play.send(Event::PrerunDone(Ok(())));
    assert_eq!(play.send(lost("web", 1)), ["forget web 1", "start web 2"]);
}

#[test]
fn scenario_038_a_vanished_directory_kills_the_task_and_fails_the_allocation() {
    let mut play = Play::running(service().with("web", Role::Main)).restarted(Boot::Same);
    play.send(Event::Begin);
    assert!(
        play.send(Event::PrerunDone(Err("gone".to_owned())))
            .is_empty()
    );
    assert_eq!(play.send(recovered("web", 1)), ["stop web 1 5s"]);
    assert_eq!(play.exited("web", 1, 137), ["ended", "forget web 1"]);
    assert_eq!(play.status(), ClientStatus::Failed);
    assert!(play.has_failed("web"));
}

#[test]
fn a_kill_under_way_goes_on() {
    let spec = || {
        service()
            .with("web", Role::Main)
            .edit("web", |task| task.shutdown_delay = seconds(10))
    };
    let mut play = Play::running(spec());
    play.stop();
    play.pass(seconds(4));
    let mut play = play.restarted(Boot::Same);
    play.send(Event::Begin);
    play.send(Event::PrerunDone(Ok(())));
    assert!(play.send(recovered("web", 1)).is_empty());
    assert_eq!(
        play.pass(seconds(6)),
        ["stop web 1 5s"],
        "the rest of the delay"
    );
    let mut play = play.restarted(Boot::Same);
    play.send(Event::Begin);
    play.send(Event::PrerunDone(Ok(())));
    assert_eq!(play.send(recovered("web", 1)), ["stop web 1 5s"]);
    let mut play = play.restarted(Boot::New);
    play.send(Event::Begin);
    play.send(Event::PrerunDone(Ok(())));
    assert_eq!(play.send(lost("web", 1)), ["ended", "forget web 1"]);
    assert_eq!(play.status(), ClientStatus::Complete);
}

#[test]
fn a_stage_once_left_stays_left() {
    let mut play = Play::running(
        service()
            .with("init", Role::Prestart)
            .with("main", Role::Main),
    );
    play.exited("init", 1, 0);
    play.started("main", 1);
    let mut play = play.restarted(Boot::New);
    assert_eq!(play.send(Event::Begin), ["prerun again", "recover main 1"]);
    play.send(Event::PrerunDone(Ok(())));
    play.send(Event::ServersContacted);
    assert_eq!(
        play.send(lost("main", 1)),
        ["forget main 1", "start main 2"]
    );
}

#[test]
fn the_attempt_that_counts_is_the_running_or_the_next_one() {
    let spec = batch().with("one", Role::Main).with("two", Role::Main);
    let expected = |play: &Play| {
        let attempts = play.runner.expected_attempts();
        attempts
            .map(|(task, attempt)| format!("{task} {attempt}"))
            .collect::<Vec<_>>()
    };
    let mut play = Play::new(spec);
    assert_eq!(
        expected(&play),
        ["one 1", "two 1"],
        "a start may be all that was forgotten"
    );
    play.send(Event::Begin);
    play.send(Event::PrerunDone(Ok(())));
    assert_eq!(expected(&play), ["one 1", "two 1"]);
    play.started("one", 1);
    play.started("two", 1);
    play.exited("one", 1, 1);
    play.exited("two", 1, 0);
    assert_eq!(
        expected(&play),
        ["one 2"],
        "the first is over, and two is dead"
    );
    let mut play = play.restarted(Boot::Same);
    assert_eq!(expected(&play), ["one 2"]);
    play.send(Event::Begin);
    play.send(Event::PrerunDone(Ok(())));
    play.pass(seconds(20));
    assert_eq!(expected(&play), ["one 2"]);
}

#[test]
fn an_ended_allocation_has_no_effects() {
    let mut play = Play::running(batch().with("web", Role::Main));
    play.exited("web", 1, 0);
    let mut play = play.restarted(Boot::Same);
    assert!(play.send(Event::Begin).is_empty());
    assert!(play.runner.is_ended());
}

#[test]
fn scenario_007_a_reconnect_is_one_event_per_task() {
    let mut play = Play::running(service().with("one", Role::Main).with("two", Role::Main));
    assert!(play.send(Event::Reconnected).is_empty());
    for task in ["one", "two"] {
        let events = play.events(task);
        assert_eq!(
            events
                .iter()
                .filter(|event| *event == "Reconnected")
                .count(),
            1
        );
        assert_eq!(play.phase(task), TaskPhase::Running);
    }
}
