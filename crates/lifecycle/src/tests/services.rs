//! Owners whose services are registered.

use super::*;

fn owners(play: &Play) -> String {
    let names = play
        .runner
        .registered()
        .into_iter()
        .map(|owner| match owner {
            model::ServiceOwner::Group => "group".to_owned(),
            model::ServiceOwner::Task(task) => task,
        });
    names.collect::<Vec<_>>().join(" ")
}

/// Sends an event; returns whether the new state is reported at once.
fn is_reported(play: &mut Play, event: Event) -> bool {
    let effects = play.runner.step(play.now, event, &mut play.rng);
    effects.contains(&Effect::Report)
}

#[test]
fn services_of_a_group_come_before_its_tasks_and_those_of_a_task_with_its_start() {
    let mut play = Play::new(service().with("web", Role::Main));
    play.send(Event::Begin);
    assert_eq!(owners(&play), "");
    assert!(is_reported(&mut play, Event::PrerunDone(Ok(()))));
    assert_eq!(owners(&play), "group");
    let started = Event::Started {
        task: "web".to_owned(),
        attempt: 1,
    };
    assert!(is_reported(&mut play, started));
    assert_eq!(owners(&play), "group web");
}

#[test]
fn scenario_048_services_are_gone_before_the_shutdown_delays() {
    let mut spec = service().with("web", Role::Main);
    spec.group.shutdown_delay = seconds(5);
    let spec = spec.edit("web", |task| task.shutdown_delay = seconds(3));
    let mut play = Play::running(spec);
    assert_eq!(owners(&play), "group web");
    assert!(is_reported(&mut play, Event::Stop { skip_delays: false }));
    assert_eq!(owners(&play), "");
    let effects = play.pass(seconds(7));
    assert!(
        !effects.iter().any(|it| it.starts_with("stop")),
        "{effects:?}"
    );
    let effects = play.pass(seconds(1));
    assert!(
        effects.iter().any(|it| it.starts_with("stop")),
        "{effects:?}"
    );
}

#[test]
fn a_restart_takes_the_services_of_its_task_out() {
    let mut play = Play::running(service().with("web", Role::Main).with("db", Role::Main));
    assert_eq!(owners(&play), "group db web");
    play.send(Event::Restart {
        scope: model::RestartScope::Task("web".to_owned()),
        reason: "asked".to_owned(),
    });
    assert_eq!(owners(&play), "group db");
    play.exited("web", 1, 0);
    play.pass(Duration::ZERO);
    play.started("web", 2);
    assert_eq!(owners(&play), "group db web");
}

#[test]
fn services_stay_while_the_agent_is_restarted() {
    let mut play = Play::running(service().with("web", Role::Main)).restarted(Boot::Same);
    assert_eq!(owners(&play), "group web");
    play.send(Event::Begin);
    assert_eq!(owners(&play), "group web");
}
