//! Deadlines of the whole allocation, and clocks that are set.

use super::*;

fn limited(limit: u64) -> AllocSpec {
    AllocSpec {
        run_until: Some(WALL_START.plus(seconds(limit))),
        ..batch()
    }
    .with("main", Role::Main)
    .with("clean", Role::Poststop)
}

#[test]
fn scenario_052_max_run_duration_goes_on_while_the_agent_is_down() {
    let mut play = Play::running(limited(10));
    play.pass(seconds(5));
    play.jump(seconds(10));
    let mut play = play.restarted(Boot::Same);
    play.send(Event::Begin);
    play.send(Event::PrerunDone(Ok(())));
    play.send(Event::Recovered {
        task: "main".to_owned(),
        attempt: 1,
    });
    assert_eq!(play.pass(Duration::ZERO), ["stop main 1 5s"]);
    assert_eq!(play.status(), ClientStatus::Running, "until it is dead");
    assert_eq!(
        play.exited("main", 1, 137),
        ["ended", "forget main 1"],
        "no poststop"
    );
    assert_eq!(play.status(), ClientStatus::Complete);
    assert_eq!(
        play.runner.client().description,
        "Ended at its max_run_duration"
    );
}

#[test]
fn max_run_duration_ends_even_a_poststop_task() {
    let mut play = Play::running(limited(10));
    play.stop();
    play.exited("main", 1, 0);
    play.started("clean", 1);
    assert_eq!(play.pass(seconds(10)), ["stop clean 1 5s"]);
    assert_eq!(play.exited("clean", 1, 137), ["ended", "forget clean 1"]);
}

#[test]
fn a_task_that_ends_in_time_has_not_run_too_long() {
    let mut play = Play::running(limited(10));
    play.exited("main", 1, 0);
    play.started("clean", 1);
    play.exited("clean", 1, 0);
    assert!(play.pass(seconds(60)).is_empty());
    assert_eq!(play.runner.client().description, "All tasks have completed");
}

fn alone(limit: u64) -> AllocSpec {
    service()
        .without_contact_for(limit)
        .with("main", Role::Main)
}

#[test]
fn scenario_008_each_allocation_counts_its_own_silence() {
    let mut ten = Play::running(alone(10));
    let mut fifteen = Play::running(alone(15));
    for play in [&mut ten, &mut fifteen] {
        play.send(Event::Contact {
            age: Duration::ZERO,
        });
        play.pass(seconds(8));
        play.send(Event::Contact {
            age: Duration::ZERO,
        });
        assert!(play.pass(Duration::from_millis(9_999)).is_empty());
    }
    assert_eq!(ten.pass(Duration::from_millis(1)), ["stop main 1 5s"]);
    assert!(fifteen.pass(Duration::from_millis(5_000)).is_empty());
    assert_eq!(fifteen.pass(Duration::from_millis(1)), ["stop main 1 5s"]);
    ten.exited("main", 1, 0);
    assert_eq!(ten.status(), ClientStatus::Complete);
    assert!(
        ten.runner
            .client()
            .description
            .contains("10s without contact")
    );
}

#[test]
fn scenario_009_silence_counts_while_the_agent_is_dead() {
    let mut play = Play::running(alone(30));
    play.send(Event::Contact {
        age: Duration::ZERO,
    });
    play.jump(seconds(300));
    for boot in [Boot::Same, Boot::New] {
        let mut play = Play::running(alone(30)).restarted(boot);
        play.send(Event::Begin);
        play.send(Event::Contact { age: seconds(300) });
        play.send(Event::PrerunDone(Ok(())));
        play.send(Event::Recovered {
            task: "main".to_owned(),
            attempt: 1,
        });
        assert_eq!(play.pass(Duration::ZERO), ["stop main 1 5s"]);
        play.exited("main", 1, 0);
        assert!(play.pass(seconds(60)).is_empty(), "and it stays dead");
    }
}

#[test]
fn scenario_077_setting_the_clock_kills_nothing_and_hastens_nothing() {
    for wall in [
        WALL_START.plus(seconds(3600)),
        Timestamp(WALL_START.0 - 3_600_000_000_000),
    ] {
        let spec = AllocSpec {
            run_until: Some(WALL_START.plus(seconds(100))),
            ..batch().without_contact_for(200)
        };
        let mut play = Play::running(spec.with("main", Role::Main));
        play.send(Event::Contact {
            age: Duration::ZERO,
        });
        play.exited("main", 1, 1);
        play.set_wall(wall);
        assert!(play.pass(seconds(14)).is_empty(), "the restart's delay");
        assert_eq!(play.pass(seconds(5)), ["start main 2"]);
        play.started("main", 2);
        assert!(play.pass(seconds(80)).is_empty());
        assert_eq!(
            play.pass(seconds(1)),
            ["stop main 2 5s"],
            "max_run_duration at 100 s"
        );
    }
}
