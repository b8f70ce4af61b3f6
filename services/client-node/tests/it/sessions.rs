//! Registration, heartbeats and failover.

use std::net::SocketAddr;
use std::time::Duration;

use model::ClientStatus;
use test_kit::wait_for;
use tokio::net::TcpListener;

use crate::gateway::{Cluster, Gateway, LIMIT};
use crate::node::{Place, Running, is_alive, mock, service, start};

#[tokio::test]
async fn scenario_001_a_node_registers_once_and_is_the_same_after_a_restart() {
    let place = Place::new();
    let (cluster, gateway, node) = start(&place).await;
    cluster
        .until_fact("heartbeats", |facts| (facts.heartbeats > 0).then_some(()))
        .await;
    node.stop().await;
    let node = Running::start(place.config(&[&gateway.address])).await;
    cluster
        .until_fact("another registration", |facts| {
            (facts.registrations.len() > 1).then_some(())
        })
        .await;
    node.stop().await;
    let facts = cluster.facts();
    let [first, second] = facts.registrations.as_slice() else {
        panic!("{} registrations", facts.registrations.len())
    };
    assert_eq!((first.id, &first.secret), (second.id, &second.secret));
    assert!(first.drivers["raw_exec"].healthy);
    assert_eq!(first.attributes["driver.raw_exec"], "1");
}

#[tokio::test]
async fn heartbeats_follow_the_servers_time_to_live() {
    let place = Place::new();
    let cluster = Cluster::new();
    cluster.facts().ttl = Duration::from_millis(200);
    let gateway = Gateway::start(&cluster).await;
    let node = Running::start(place.config(&[&gateway.address])).await;
    let began = tokio::time::Instant::now();
    cluster
        .until_fact("beats", |facts| (facts.heartbeats >= 20).then_some(()))
        .await;
    assert!(
        began.elapsed() >= Duration::from_millis(1_500),
        "twice in 200 ms, and no faster"
    );
    node.stop().await;
}

#[tokio::test]
async fn an_older_gateway_is_asked_for_requests_for_connections_once() {
    let place = Place::new();
    let cluster = Cluster::new();
    cluster.facts().ttl = Duration::from_millis(200);
    let gateway = Gateway::start(&cluster).await;
    let node = Running::start(place.config(&[&gateway.address])).await;
    cluster
        .until_fact("beats", |facts| (facts.heartbeats >= 20).then_some(()))
        .await;
    // It is asked again after minutes, or at another gateway. Its refusal starts no failover.
    assert_eq!(cluster.facts().awaited, 1);
    node.stop().await;
}

#[tokio::test]
async fn scenario_010_a_node_that_was_deleted_registers_again_and_its_tasks_do_not_notice() {
    let place = Place::new();
    let (cluster, _gateway, node) = start(&place).await;
    let id = cluster.assign(1, &mock(serde_json::json!({"run_for": "1h"})));
    let before = cluster.until(id, ClientStatus::Running).await;
    cluster.forget_nodes();
    cluster
        .until_fact("another registration", |facts| {
            (facts.registrations.len() > 1).then_some(())
        })
        .await;
    let beats = cluster.facts().heartbeats;
    cluster
        .until_fact("beats", |facts| (facts.heartbeats > beats).then_some(()))
        .await;
    assert_eq!(cluster.reported(id), before);
    node.stop().await;
}

#[tokio::test]
async fn scenario_012_a_node_leaves_an_unresponsive_gateway() {
    let place = Place::new();
    let cluster = Cluster::new();
    // It accepts connections and never answers.
    let hole = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let silent = format!("http://{}", hole.local_addr().unwrap());
    let gateway = Gateway::start(&cluster).await;
    let node = Running::start(place.config(&[&silent, &gateway.address])).await;
    let id = cluster.assign(1, &mock(serde_json::json!({"run_for": "1h"})));
    cluster.until(id, ClientStatus::Running).await;
    node.stop().await;
}

#[tokio::test]
async fn a_node_whose_gateway_dies_fails_over() {
    let place = Place::new();
    let cluster = Cluster::new();
    cluster.facts().ttl = Duration::from_secs(1);
    let first = Gateway::start(&cluster).await;
    let second = Gateway::start(&cluster).await;
    let node = Running::start(place.config(&[&first.address, &second.address])).await;
    let one = cluster.assign(1, &mock(serde_json::json!({"run_for": "1h"})));
    cluster.until(one, ClientStatus::Running).await;
    drop(first);
    let two = cluster.assign(2, &mock(serde_json::json!({"run_for": "1h"})));
    cluster.until(two, ClientStatus::Running).await;
    assert_eq!(cluster.status(one), Some(ClientStatus::Running));
    node.stop().await;
}

#[tokio::test]
async fn a_refused_heartbeat_goes_to_another_gateway_and_the_stream_follows() {
    let place = Place::new();
    let cluster = Cluster::new();
    let [first, second, third] = [
        Gateway::start(&cluster).await,
        Gateway::start(&cluster).await,
        Gateway::start(&cluster).await,
    ];
    let addresses = [&first, &second, &third].map(|gateway| gateway.address.clone());
    let node = Running::start(place.config(&[&addresses[0], &addresses[1], &addresses[2]])).await;
    let id = cluster.assign(1, &mock(serde_json::json!({"run_for": "1h"})));
    let before = cluster.until(id, ClientStatus::Running).await;
    let began = {
        let mut facts = cluster.facts();
        // The gateways answer everything else.
        facts.refusing.extend(addresses[..2].iter().cloned());
        facts.beats.len()
    };
    cluster
        .until_fact("heartbeats and a stream at the third gateway", |facts| {
            let is_there = facts.watched_at.last() == Some(&addresses[2]);
            let beats = facts.beats[began..].iter();
            let accepted = beats.filter(|at| **at == addresses[2]).count();
            (is_there && accepted >= 3).then_some(())
        })
        .await;
    // All refuse: every heartbeat goes to another gateway than the one before, with pauses.
    let (refusals, refused_at) = {
        let mut facts = cluster.facts();
        facts.refusing.insert(addresses[2].clone());
        (facts.beats.len(), tokio::time::Instant::now())
    };
    let beats = cluster
        .until_fact("refusals", |facts| {
            let beats = &facts.beats[refusals..];
            (beats.len() >= 12).then(|| beats.to_vec())
        })
        .await;
    for (position, pair) in beats.windows(2).enumerate() {
        assert_ne!(pair[0], pair[1], "heartbeat {position} of {beats:?}");
    }
    // Four rounds, with pauses of at least 100, 200 and 250 ms in between.
    assert!(refused_at.elapsed() >= Duration::from_millis(500));
    assert_eq!(cluster.reported(id), before, "the task does not notice");
    assert_eq!(cluster.facts().registrations.len(), 1);
    node.stop().await;
}

#[tokio::test]
async fn a_node_that_learns_that_it_is_down_registers_through_another_gateway() {
    let place = Place::new();
    let cluster = Cluster::new();
    let [first, second] = [
        Gateway::start(&cluster).await,
        Gateway::start(&cluster).await,
    ];
    cluster.facts().node_status = "down";
    let node = Running::start(place.config(&[&first.address, &second.address])).await;
    cluster
        .until_fact("another registration", |facts| {
            (facts.registered_at.len() > 1).then_some(())
        })
        .await;
    cluster.facts().node_status = "ready";
    let registered_at = cluster.facts().registered_at.clone();
    let expected = [first.address.clone(), second.address.clone()];
    assert_eq!(registered_at[..2], expected);
    node.stop().await;
}

#[tokio::test]
async fn scenario_004_a_node_without_servers_waits_for_them() {
    let place = Place::new();
    let cluster = Cluster::new();
    let gateway = Gateway::start(&cluster).await;
    let (address, url) = (gateway.socket_address(), gateway.address.clone());
    drop(gateway);
    wait_for("the port to be free", LIMIT, async || {
        TcpListener::bind(address).await.ok()
    })
    .await;
    let node = Running::start(place.config(&[&url])).await;
    let gateway = start_again(&cluster, address).await;
    let id = cluster.assign(1, &mock(serde_json::json!({"run_for": "1h"})));
    cluster.until(id, ClientStatus::Running).await;
    node.stop().await;
    drop(gateway);
}

/// Starts a gateway at the address of one that has ended.
async fn start_again(cluster: &Cluster, address: SocketAddr) -> Gateway {
    // The system may take a moment to release the port.
    wait_for("the port to be free", LIMIT, async || {
        TcpListener::bind(address).await.ok()
    })
    .await;
    Gateway::start_at(cluster, address).await
}

#[tokio::test]
async fn scenario_005_a_short_outage_changes_no_task_and_needs_no_registration() {
    let place = Place::new();
    let (cluster, gateway, node) = start(&place).await;
    let id = cluster.assign(1, &mock(serde_json::json!({"run_for": "1h"})));
    let before = cluster.until(id, ClientStatus::Running).await;
    let address = gateway.socket_address();
    drop(gateway);
    let gateway = start_again(&cluster, address).await;
    let beats = cluster.facts().heartbeats;
    cluster
        .until_fact("heartbeats", |facts| {
            (facts.heartbeats > beats + 1).then_some(())
        })
        .await;
    assert_eq!(cluster.reported(id), before);
    assert_eq!(cluster.facts().registrations.len(), 1);
    node.stop().await;
    drop(gateway);
}

#[tokio::test]
async fn scenario_006_a_task_that_was_replaced_during_an_outage_stops_after_it() {
    let place = Place::new();
    let (cluster, gateway, node) = start(&place).await;
    let id = cluster.assign(1, &service("echo pid $$; sleep 600"));
    cluster.until(id, ClientStatus::Running).await;
    let pid = place.pid(id).await;
    let address = gateway.socket_address();
    drop(gateway);
    // The servers have given the node up, and another node has the replacement.
    cluster.stop(id);
    assert!(is_alive(pid), "it runs during the outage");
    let gateway = start_again(&cluster, address).await;
    cluster.until(id, ClientStatus::Complete).await;
    assert!(!is_alive(pid));
    node.stop().await;
    drop(gateway);
}

#[tokio::test]
async fn scenario_008_a_task_that_may_not_run_alone_ends_when_the_servers_are_silent() {
    let place = Place::new();
    let (cluster, gateway, node) = start(&place).await;
    let mut job = mock(serde_json::json!({
        "run_for": "1h", "stdout_string": "tick\n",
        "stdout_repeat": 100_000, "stdout_repeat_duration": "20ms"
    }));
    job.task_groups[0].disconnect = Some(model::job::DisconnectStrategy {
        lost_after: None,
        stop_on_client_after: Some(Duration::from_secs(3)),
        replace: true,
        reconcile: model::job::ReconcileChoice::BestScore,
    });
    let id = cluster.assign(1, &job);
    cluster.until(id, ClientStatus::Running).await;
    let address = gateway.socket_address();
    drop(gateway);
    // Its output ends with it. Looks are counted, not seconds: on a machine in distress the task
    // gets as little time as the test.
    let (mut length, mut looks) = (0, 0);
    wait_for("the task to fall silent", LIMIT, async || {
        let now = place.output(id).len();
        looks = if now == length { looks + 1 } else { 0 };
        length = now;
        (length > 0 && looks > 200).then_some(())
    })
    .await;
    let _gateway = wait_for("the port to be free", LIMIT, async || {
        TcpListener::bind(address).await.ok()?;
        Some(Gateway::start_at(&cluster, address).await)
    })
    .await;
    let client = cluster.until(id, ClientStatus::Complete).await;
    assert!(
        client.description.contains("without contact to a server"),
        "{}",
        client.description
    );
    node.stop().await;
}
