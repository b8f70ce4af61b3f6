//! Assignments by gateways, stale ones included.

use std::time::Duration;

use model::job::RestartMode;
use model::{AllocId, ClientStatus, DeploymentId, DesiredStatus};
use proto::internal::v1::AllocationsUpdate;

use crate::gateway::{Cluster, Gateway};
use crate::node::{Place, Running, is_alive, mock, service, start};

const COUNTING: &str = "echo pid $$; while :; do sleep 0.02; echo tick; done";

fn empty(revision: u64) -> AllocationsUpdate {
    AllocationsUpdate {
        revision,
        full: true,
        ..AllocationsUpdate::default()
    }
}

#[tokio::test]
async fn scenario_017_a_gateway_that_is_behind_kills_nothing() {
    let place = Place::new();
    let (cluster, _gateway, node) = start(&place).await;
    let id = cluster.assign(1, &service(COUNTING));
    cluster.until(id, ClientStatus::Running).await;
    let pid = place.pid(id).await;
    // The node does not know the allocation yet.
    let revision = cluster.facts().revision;
    cluster.send(empty(revision - 1));
    // The next update of the same stream is applied after it.
    let other = cluster.assign(2, &mock(serde_json::json!({"run_for": "1h"})));
    cluster.until(other, ClientStatus::Running).await;
    assert!(is_alive(pid), "{:#?}", cluster.reported(id));
    assert_eq!(cluster.status(id), Some(ClientStatus::Running));
    cluster.collect(id);
    place.is_empty().await;
    node.stop().await;
}

#[tokio::test]
async fn scenario_018_a_collected_allocation_is_killed_and_removed() {
    let place = Place::new();
    let (cluster, _gateway, node) = start(&place).await;
    let id = cluster.assign(1, &service(COUNTING));
    let pid = place.pid(id).await;
    let directory = place.path().join(format!("alloc/{id}"));
    assert!(directory.exists());
    cluster.collect(id);
    place.is_empty().await;
    assert!(!is_alive(pid));
    test_kit::wait_for("the directory to go", crate::gateway::LIMIT, async || {
        (!directory.exists()).then_some(())
    })
    .await;
    node.stop().await;
}

#[tokio::test]
async fn scenario_016_an_assignment_that_comes_twice_is_one_process() {
    let place = Place::new();
    let (cluster, _gateway, node) = start(&place).await;
    let id = cluster.assign(1, &service(COUNTING));
    let pid = place.pid(id).await;
    for _ in 0..5 {
        cluster.send_again();
    }
    let other = cluster.assign(2, &mock(serde_json::json!({"run_for": "1h"})));
    cluster.until(other, ClientStatus::Running).await;
    let client = cluster.until(id, ClientStatus::Running).await;
    assert_eq!(client.task_states["server"].restarts, 0);
    let said = place.output(id);
    assert_eq!(
        said.lines().filter(|line| line.starts_with("pid ")).count(),
        1
    );
    assert!(is_alive(pid), "{:#?}", cluster.reported(id));
    cluster.stop(id);
    cluster.until(id, ClientStatus::Complete).await;
    place.is_empty().await;
    node.stop().await;
}

#[tokio::test]
async fn a_change_in_place_leaves_the_process_alone_and_counts_from_then_on() {
    let place = Place::new();
    let (cluster, _gateway, node) = start(&place).await;
    let mut job = service(COUNTING);
    let id = cluster.assign(1, &job);
    cluster.until(id, ClientStatus::Running).await;
    let pid = place.pid(id).await;
    job.version = 1;
    job.task_groups[0].tasks[0].restart.attempts = 0;
    job.task_groups[0].tasks[0].restart.mode = RestartMode::Fail;
    cluster.assign_as(1, &job, |_| {});
    cluster.edit(id, |alloc| alloc.job_version = 1);
    let other = cluster.assign(2, &mock(serde_json::json!({"run_for": "1h"})));
    cluster.until(other, ClientStatus::Running).await;
    assert!(is_alive(pid), "{:#?}", cluster.reported(id));
    crate::node::kill(pid, "KILL");
    let client = cluster.until(id, ClientStatus::Failed).await;
    assert_eq!(client.task_states["server"].restarts, 0);
    place.is_empty().await;
    node.stop().await;
}

#[tokio::test]
async fn scenario_007_a_node_that_was_given_up_reports_every_allocation_again() {
    let place = Place::new();
    let (cluster, _gateway, node) = start(&place).await;
    let id = cluster.assign(1, &mock(serde_json::json!({"run_for": "1h"})));
    cluster.until(id, ClientStatus::Running).await;
    cluster.facts().reported.clear();
    cluster.edit(id, |alloc| {
        alloc.client_status_override = Some(ClientStatus::Unknown)
    });
    let client = cluster.until(id, ClientStatus::Running).await;
    let events = &client.task_states["server"].events;
    assert_eq!(
        events
            .iter()
            .filter(|event| event.event_type == "Reconnected")
            .count(),
        1
    );
    node.stop().await;
}

#[tokio::test]
async fn an_allocation_stopped_before_its_start_is_complete() {
    let place = Place::new();
    let (cluster, _gateway, node) = start(&place).await;
    let id = cluster.assign_as(1, &service("echo ran"), |alloc| {
        alloc.desired_status = DesiredStatus::Stop;
    });
    cluster.until(id, ClientStatus::Complete).await;
    assert_eq!(place.output(id), "");
    node.stop().await;
}

#[tokio::test]
async fn an_invalid_assignment_does_not_block_the_others() {
    let place = Place::new();
    let (cluster, _gateway, node) = start(&place).await;
    let mut job = mock(serde_json::json!({"run_for": "1h"}));
    let groupless = cluster.assign_as(1, &job, |alloc| alloc.task_group = "no such group".into());
    job.task_groups[0].tasks[0].driver = String::new();
    job.version = 1;
    let undriven = cluster.assign(2, &job);
    let good = cluster.assign(3, &mock(serde_json::json!({"run_for": "1h"})));
    cluster.until(good, ClientStatus::Running).await;
    for (id, reason) in [(groupless, "no group"), (undriven, "cannot be read")] {
        let client = cluster.until(id, ClientStatus::Failed).await;
        assert!(
            client.description.contains(reason),
            "{}",
            client.description
        );
    }
    node.stop().await;
}

#[tokio::test]
async fn an_allocation_that_cannot_run_is_reported_once_with_its_reason() {
    let place = Place::new();
    let (cluster, gateway, node) = start(&place).await;
    let job = mock(serde_json::json!({"run_for": "1h"}));
    let jobless = cluster.assign_as(1, &job, |alloc| {
        alloc.job_version = 77;
        // The time of the health varies.
        alloc.deployment_id = Some(DeploymentId::from_random(1));
    });
    // From servers of a version with unknown values.
    let mut unreadable = cluster.full();
    unreadable.assignments.truncate(1);
    let garbled = cluster.alloc_id(2);
    let allocation = unreadable.assignments[0].allocation.as_mut().unwrap();
    allocation.id = garbled.to_string();
    allocation.desired_status = "hibernate".to_owned();
    cluster.send(unreadable);
    for (id, reason) in [
        (jobless, "version 77 cannot be read"),
        (garbled, "desired_status"),
    ] {
        let client = cluster.until(id, ClientStatus::Failed).await;
        assert!(
            client.description.contains("Unable to add allocation")
                && client.description.contains(reason),
            "{}",
            client.description
        );
    }
    let healthy = |id| cluster.reported(id).health.map(|health| health.healthy);
    assert_eq!(
        healthy(jobless),
        Some(false),
        "its deployment need not wait"
    );
    let told = cluster.facts().told[&jobless];
    for number in 3..6 {
        cluster.send_again();
        let marker = cluster.assign(number, &job);
        cluster.until(marker, ClientStatus::Running).await;
    }
    node.stop().await;
    let node = Running::start(place.config(&[&gateway.address])).await;
    let marker = cluster.assign(6, &job);
    cluster.until(marker, ClientStatus::Running).await;
    assert_eq!(cluster.facts().told[&jobless], told, "servers know it");
    node.stop().await;
}

#[tokio::test]
async fn scenario_057_the_allocation_that_ended_first_makes_room() {
    let place = Place::new();
    let cluster = Cluster::new();
    let gateway = Gateway::start(&cluster).await;
    let mut config = place.config(&[&gateway.address]);
    config.gc.interval = Duration::from_millis(50);
    config.gc.max_allocs = 3;
    let node = Running::start(config).await;
    let mut batch = test_kit::builders::batch("short", 1);
    batch.task_groups[0].tasks[0].config = serde_json::json!({"stdout_string": "ran\n"})
        .as_object()
        .unwrap()
        .clone();
    let batch = crate::node::stored(batch);
    // The first to end has the highest id.
    let mut ended = Vec::new();
    for number in (1..=4).rev() {
        let id = cluster.assign(number, &batch);
        cluster.until(id, ClientStatus::Complete).await;
        ended.push(id);
    }
    let kept = || ended.iter().map(|id| !place.output(*id).is_empty());
    test_kit::wait_for("room", crate::gateway::LIMIT, async || {
        kept().any(|is_kept| !is_kept).then_some(())
    })
    .await;
    assert_eq!(kept().collect::<Vec<_>>(), [false, true, true, true]);
    node.stop().await;
}

#[tokio::test]
async fn allocations_that_have_ended_make_room_and_are_not_run_again() {
    let place = Place::new();
    let cluster = Cluster::new();
    let gateway = Gateway::start(&cluster).await;
    let mut config = place.config(&[&gateway.address]);
    config.gc.interval = Duration::from_millis(50);
    config.gc.max_allocs = 2;
    let node = Running::start(config).await;
    let short = mock(serde_json::json!({"run_for": "1h"}));
    let mut batch = test_kit::builders::batch("short", 1);
    batch.task_groups[0].tasks[0].config = serde_json::json!({"stdout_string": "ran\n"})
        .as_object()
        .unwrap()
        .clone();
    let batch = crate::node::stored(batch);
    let ended: Vec<AllocId> = (1..=4)
        .map(|number| cluster.assign(number, &batch))
        .collect();
    let live = cluster.assign(9, &short);
    for id in &ended {
        cluster.until(*id, ClientStatus::Complete).await;
    }
    let kept = || {
        ended
            .iter()
            .filter(|id| !place.output(**id).is_empty())
            .count()
    };
    test_kit::wait_for("room", crate::gateway::LIMIT, async || {
        (kept() <= 1).then_some(())
    })
    .await;
    assert_eq!(cluster.status(live), Some(ClientStatus::Running));
    // The servers still list them.
    for _ in 0..3 {
        cluster.send_again();
    }
    let other = cluster.assign(10, &short);
    cluster.until(other, ClientStatus::Running).await;
    assert!(kept() <= 1, "what was collected does not run again");
    node.stop().await;
}
