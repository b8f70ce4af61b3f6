//! Tasks from start to end, as reported to the servers.

use std::time::Duration;

use model::ClientStatus;
use model::job::{Lifecycle, LifecycleHook, RestartMode};

use crate::node::{Place, batch, is_alive, service, start};

#[tokio::test]
async fn a_task_runs_is_reported_and_is_stopped() {
    let place = Place::new();
    let (cluster, _gateway, node) = start(&place).await;
    let id = cluster.assign(1, &service("echo pid $$; exec sleep 600"));
    let client = cluster.until(id, ClientStatus::Running).await;
    let pid = place.pid(id).await;
    assert!(is_alive(pid));
    let types = |client: &model::AllocClient| {
        let events = &client.task_states["server"].events;
        events
            .iter()
            .map(|event| event.event_type.clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(types(&client), ["Received", "Task Setup", "Started"]);
    cluster.stop(id);
    let client = cluster.until(id, ClientStatus::Complete).await;
    assert_eq!(types(&client)[3..], ["Killing", "Terminated", "Killed"]);
    assert_eq!(
        client.task_states["server"].events[4].details["signal"],
        "2"
    );
    assert!(!is_alive(pid));
    place.is_empty().await;
    node.stop().await;
}

#[tokio::test]
async fn scenario_039_the_restart_policy_counts_real_processes() {
    let place = Place::new();
    let (cluster, _gateway, node) = start(&place).await;
    let mut job = service("echo run; exit 3");
    let restart = &mut job.task_groups[0].tasks[0].restart;
    (restart.attempts, restart.delay, restart.mode) =
        (2, Duration::from_millis(100), RestartMode::Fail);
    let id = cluster.assign(1, &job);
    let client = cluster.until(id, ClientStatus::Failed).await;
    let state = &client.task_states["server"];
    assert_eq!(state.restarts, 2);
    assert!(state.failed);
    let last = state.events.last().unwrap();
    assert_eq!(last.event_type, "Not Restarting");
    assert!(
        last.message.contains("Exceeded allowed attempts 2"),
        "{}",
        last.message
    );
    let ends = state
        .events
        .iter()
        .filter(|event| event.event_type == "Terminated");
    assert!(ends.clone().all(|event| event.details["exit_code"] == "3"));
    assert_eq!(ends.count(), 3);
    assert_eq!(
        place.output(id),
        "run\n".repeat(3),
        "one log across the runs"
    );
    place.is_empty().await;
    node.stop().await;
}

#[tokio::test]
async fn scenario_042_a_batch_task_ends_with_success() {
    let place = Place::new();
    let (cluster, _gateway, node) = start(&place).await;
    let good = cluster.assign(1, &batch("echo done"));
    let client = cluster.until(good, ClientStatus::Complete).await;
    assert_eq!(client.task_states["server"].restarts, 0);
    let mut bad = batch("exit 1");
    bad.id = "bad".to_owned();
    let bad = cluster.assign(2, &bad);
    cluster.until(bad, ClientStatus::Failed).await;
    place.is_empty().await;
    node.stop().await;
}

#[tokio::test]
async fn scenario_045_a_task_that_ignores_its_signal_is_killed_with_its_children() {
    let place = Place::new();
    let (cluster, _gateway, node) = start(&place).await;
    let mut job = service(
        "trap '' INT TERM; (setsid sleep 600 &); echo pid $$; while :; do sleep 0.02; done",
    );
    job.task_groups[0].tasks[0].kill_timeout = Duration::from_millis(300);
    let id = cluster.assign(1, &job);
    let pid = place.pid(id).await;
    cluster.until(id, ClientStatus::Running).await;
    cluster.stop(id);
    let client = cluster.until(id, ClientStatus::Complete).await;
    assert!(!is_alive(pid));
    let events = &client.task_states["server"].events;
    let end = events
        .iter()
        .find(|event| event.event_type == "Terminated")
        .unwrap();
    assert_eq!(
        (
            end.details["signal"].as_str(),
            end.details["exit_code"].as_str()
        ),
        ("9", "137")
    );
    place.is_empty().await;
    node.stop().await;
}

#[tokio::test]
async fn stages_run_one_after_the_other_in_one_allocation() {
    let place = Place::new();
    let (cluster, _gateway, node) = start(&place).await;
    let mut job =
        batch("cat $NOMAD_ALLOC_DIR/data/order; echo main >> $NOMAD_ALLOC_DIR/data/order");
    let group = &mut job.task_groups[0];
    let mut init = group.tasks[0].clone();
    init.name = "init".to_owned();
    init.lifecycle = Some(Lifecycle {
        hook: LifecycleHook::Prestart,
        sidecar: false,
        wait_for: None,
    });
    init.config["args"] = serde_json::json!([
        "-c",
        "echo $NOMAD_TASK_NAME > ${NOMAD_ALLOC_DIR}/data/order"
    ]);
    let mut clean = init.clone();
    clean.name = "clean".to_owned();
    clean.lifecycle = Some(Lifecycle {
        hook: LifecycleHook::Poststop,
        sidecar: false,
        wait_for: None,
    });
    clean.config["args"] = serde_json::json!(["-c", "cat $NOMAD_ALLOC_DIR/data/order"]);
    group.tasks.extend([init, clean]);
    let id = cluster.assign(1, &job);
    cluster.until(id, ClientStatus::Complete).await;
    assert_eq!(place.output(id), "init\n");
    let logs = place.path().join(format!("alloc/{id}/alloc/logs"));
    let last = std::fs::read_to_string(logs.join("clean.stdout.0")).unwrap();
    assert_eq!(last, "init\nmain\n");
    place.is_empty().await;
    node.stop().await;
}

#[tokio::test]
async fn a_deployments_allocation_becomes_healthy() {
    let place = Place::new();
    let (cluster, _gateway, node) = start(&place).await;
    let mut job = service("exec sleep 600");
    let mut update = test_kit::builders::rolling_update(1);
    update.min_healthy_time = Duration::from_millis(200);
    job.task_groups[0].update = Some(update);
    let deployment_id = model::DeploymentId::from_random(1);
    let id = cluster.assign_as(1, &job, |alloc| alloc.deployment_id = Some(deployment_id));
    let healthy = cluster
        .until_fact("a verdict", |facts| {
            facts.reported.get(&id).and_then(|client| client.health)
        })
        .await;
    assert!(healthy.healthy);
    assert_eq!(healthy.deployment_id, Some(deployment_id));
    cluster.stop(id);
    cluster.until(id, ClientStatus::Complete).await;
    place.is_empty().await;
    node.stop().await;
}

#[tokio::test]
async fn an_unknown_variable_in_a_tasks_configuration_is_reported() {
    let place = Place::new();
    let (cluster, _gateway, node) = start(&place).await;
    let id = cluster.assign(1, &service("echo ${NOMAD_PORT_htp}"));
    let client = cluster.until(id, ClientStatus::Failed).await;
    let events = &client.task_states["server"].events;
    let told = events
        .iter()
        .find(|event| event.event_type == "Failed Validation")
        .unwrap();
    assert!(
        told.message.contains("args[1]: there is no variable"),
        "{}",
        told.message
    );
    node.stop().await;
}
