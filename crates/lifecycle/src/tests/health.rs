//! The verdict for a deployment.

use super::*;

fn verdict(play: &Play) -> Option<bool> {
    play.runner.client().health.map(|health| health.healthy)
}

#[test]
fn an_allocation_is_healthy_after_running_for_min_healthy_time() {
    let mut play = Play::running(service().with("web", Role::Main).with_health(10, 300));
    play.pass(Duration::from_millis(9_999));
    assert_eq!(verdict(&play), None);
    play.pass(Duration::from_millis(1));
    assert_eq!(verdict(&play), Some(true));
    let health = play.runner.client().health.unwrap();
    assert_eq!(health.time, WALL_START.plus(seconds(10)));
    assert_eq!(health.deployment_id, Some(DeploymentId::from_random(1)));
}

#[test]
fn the_time_counts_from_the_newest_start() {
    let mut play = Play::running(
        service()
            .with("one", Role::Main)
            .with("two", Role::Main)
            .with_health(10, 300),
    );
    play.pass(seconds(8));
    play.exited("two", 1, 1);
    play.pass(seconds(20));
    assert_eq!(verdict(&play), None);
    play.started("two", 2);
    play.pass(seconds(9));
    assert_eq!(verdict(&play), None);
    play.pass(seconds(1));
    assert_eq!(verdict(&play), Some(true));
}

#[test]
fn scenario_053_a_task_that_keeps_restarting_is_unhealthy_at_the_deadline() {
    let spec = service()
        .with("web", Role::Main)
        .edit("web", |task| {
            task.restart.delay = Duration::ZERO;
            task.restart.attempts = 100;
        })
        .with_health(10, 30);
    let mut play = Play::running(spec);
    for attempt in 1..=3 {
        play.pass(seconds(8));
        assert_eq!(verdict(&play), None);
        play.exited("web", attempt, 1);
        play.pass(Duration::ZERO);
        play.started("web", attempt + 1);
    }
    play.pass(Duration::from_millis(5_999));
    assert_eq!(verdict(&play), None);
    play.pass(Duration::from_millis(1));
    assert_eq!(verdict(&play), Some(false));
    assert_eq!(play.last_event("web").event_type, "Alloc Unhealthy");
    play.pass(seconds(60));
    assert_eq!(verdict(&play), Some(false), "no second thoughts");
}

#[test]
fn a_failed_task_is_unhealthy_at_once() {
    let mut play = Play::running(
        service()
            .with("web", Role::Main)
            .no_restarts()
            .with_health(10, 300),
    );
    play.exited("web", 1, 1);
    assert_eq!(verdict(&play), Some(false));
}

#[test]
fn a_failed_set_up_is_unhealthy() {
    let mut play = Play::new(service().with("web", Role::Main).with_health(10, 300));
    play.send(Event::Begin);
    play.send(Event::PrerunDone(Err("disk full".to_owned())));
    assert_eq!(verdict(&play), Some(false));
}

#[test]
fn tasks_that_are_meant_to_end_may_have_ended() {
    let spec = service()
        .with("init", Role::Prestart)
        .with("web", Role::Main)
        .with("clean", Role::Poststop)
        .with_health(10, 300);
    let mut play = Play::running(spec);
    play.exited("init", 1, 0);
    play.started("web", 1);
    play.pass(seconds(10));
    assert_eq!(verdict(&play), Some(true));
}

#[test]
fn a_stopped_allocation_gets_no_verdict() {
    let mut play = Play::running(service().with("web", Role::Main).with_health(10, 30));
    play.pass(seconds(5));
    play.stop();
    play.pass(seconds(60));
    play.exited("web", 1, 0);
    assert_eq!(verdict(&play), None);
}

#[test]
fn a_new_deployment_starts_a_new_health_watch() {
    let spec = service().with("web", Role::Main).with_health(10, 300);
    let mut play = Play::running(spec.clone());
    play.pass(seconds(10));
    assert_eq!(verdict(&play), Some(true));
    let mut next = spec.clone();
    next.deployment_id = Some(DeploymentId::from_random(2));
    play.send(Event::Update(Box::new(next)));
    let health = play.runner.client().health.unwrap();
    assert_eq!(
        health.deployment_id,
        Some(DeploymentId::from_random(2)),
        "it has run for long enough"
    );
    play.send(Event::Update(Box::new(spec)));
    assert_eq!(
        play.runner.client().health.unwrap().deployment_id,
        Some(DeploymentId::from_random(1))
    );
}

#[test]
fn without_a_deployment_the_verdict_is_reported_for_drains() {
    let mut spec = service().with("web", Role::Main).with_health(10, 300);
    spec.deployment_id = None;
    let mut play = Play::running(spec.clone());
    play.pass(seconds(10));
    let health = play.runner.client().health.unwrap();
    assert_eq!((health.healthy, health.deployment_id), (true, None));
    // A new deployment starts a new watch.
    let joined = spec.clone().with_health(60, 300);
    play.send(Event::Update(Box::new(joined)));
    assert_eq!(verdict(&play), None);
    play.pass(seconds(50));
    let health = play.runner.client().health.unwrap();
    assert_eq!(health.deployment_id, Some(DeploymentId::from_random(1)));
}

#[test]
fn a_failed_allocation_without_a_deployment_is_not_unhealthy() {
    let mut spec = service().with("web", Role::Main).no_restarts();
    spec.deployment_id = None;
    let mut play = Play::running(spec);
    play.exited("web", 1, 1);
    assert_eq!(verdict(&play), None);
}

#[test]
fn the_group_says_how_health_is_found() {
    let mut job = test_kit::builders::service("web", 1);
    let group = &mut job.task_groups[0];
    group.update = Some(test_kit::builders::rolling_update(1));
    let migrate = group.migrate.as_mut().unwrap();
    migrate.min_healthy_time = seconds(7);
    migrate.healthy_deadline = seconds(70);
    let node_id = model::NodeId::from_random(1);
    let mut alloc = test_kit::builders::allocation(1, &job, node_id);
    let min_healthy = |job: &model::Job, alloc: &model::Allocation| {
        let spec = AllocSpec::new(job, alloc, crate::Limits::default()).unwrap();
        spec.health.map(|health| health.min_healthy_time)
    };
    assert_eq!(min_healthy(&job, &alloc), Some(seconds(7)));
    alloc.deployment_id = Some(DeploymentId::from_random(1));
    assert_eq!(min_healthy(&job, &alloc), Some(seconds(10)));
    alloc.deployment_id = None;
    job.task_groups[0].migrate = None;
    assert_eq!(min_healthy(&job, &alloc), None);
    job.job_type = JobType::Batch;
    assert_eq!(min_healthy(&job, &alloc), None);
}

#[test]
fn the_same_deployment_keeps_its_verdict() {
    let spec = service().with("web", Role::Main).with_health(10, 300);
    let mut play = Play::running(spec.clone());
    play.pass(seconds(10));
    let before = play.runner.client().health;
    play.pass(seconds(10));
    play.send(Event::Update(Box::new(spec)));
    assert_eq!(play.runner.client().health, before);
}

#[test]
fn the_deadline_is_kept_over_a_restart_of_the_agent() {
    let spec = service().with("web", Role::Main).with_health(60, 30);
    let mut play = Play::running(spec);
    play.pass(seconds(20));
    let mut play = play.restarted(Boot::Same);
    play.send(Event::Begin);
    play.send(Event::PrerunDone(Ok(())));
    play.send(Event::Recovered {
        task: "web".to_owned(),
        attempt: 1,
    });
    play.pass(seconds(9));
    assert_eq!(verdict(&play), None);
    play.pass(seconds(1));
    assert_eq!(verdict(&play), Some(false));
}

#[test]
fn a_failed_allocation_is_unhealthy_even_where_a_user_gives_the_verdicts() {
    let mut spec = service()
        .with("web", Role::Main)
        .no_restarts()
        .with_health(10, 300);
    spec.health = None;
    let mut play = Play::running(spec.clone());
    play.pass(seconds(600));
    assert_eq!(verdict(&play), None);
    play.exited("web", 1, 1);
    assert_eq!(verdict(&play), Some(false));
    spec.deployment_id = None;
    let mut play = Play::running(spec);
    play.exited("web", 1, 1);
    assert_eq!(verdict(&play), None);
}
