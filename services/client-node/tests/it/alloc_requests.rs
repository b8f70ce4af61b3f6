//! Signals, measurements, metadata and new fingerprints, over the node's own RPC.

use std::time::Duration;

use model::{AllocId, ClientStatus};
use proto::internal::v1::node_operations_client::NodeOperationsClient;
use proto::internal::v1::{
    NodeAllocStatsRequest, NodeApplyMetaRequest, NodeGetMetaRequest, NodeHostStatsRequest,
    NodeRefreshRequest, NodeSignalRequest,
};
use proto::v1;
use test_kit::wait_for;
use tonic::{Code, Status};

use crate::gateway::{Cluster, Gateway, LIMIT};
use crate::node::{Place, Process, Running, service, start};

fn client(node: &Running) -> NodeOperationsClient<service_kit::TracedChannel> {
    NodeOperationsClient::new(service_kit::connect_lazy(&node.address).unwrap())
}

fn secret(cluster: &Cluster) -> String {
    cluster.facts().registrations[0].secret.clone()
}

async fn signal(
    (node, secret): (&Running, &str),
    alloc_id: AllocId,
    task: &str,
    signal: &str,
) -> Result<Vec<String>, Status> {
    let request = v1::SignalAllocationRequest {
        alloc_id: alloc_id.to_string(),
        task: task.to_owned(),
        signal: signal.to_owned(),
    };
    let request = NodeSignalRequest {
        request: Some(request),
        secret: secret.to_owned(),
    };
    let sent = client(node).signal(request).await?.into_inner();
    Ok(sent.tasks)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signal_reaches_the_process_and_is_an_event() {
    let place = Place::new();
    let (cluster, _gateway, node) = start(&place).await;
    let script = "trap 'echo got usr1' USR1; echo up; while :; do sleep 0.05; done";
    let mut job = service(script);
    job.task_groups[0].tasks[0].restart.attempts = 0;
    let id = cluster.assign(1, &job);
    cluster.until(id, ClientStatus::Running).await;
    place.said(id, "up").await;
    let secret = secret(&cluster);
    let node_and_secret = (&node, secret.as_str());
    let sent = signal(node_and_secret, id, "", "SIGUSR1").await.unwrap();
    assert_eq!(sent, ["server"]);
    place.said(id, "got usr1").await;
    wait_for("the event", LIMIT, async || {
        let client = cluster.reported(id);
        let events = &client.task_states["server"].events;
        let event = events
            .iter()
            .find(|event| event.event_type == "Signaling")?;
        (event.details["signal"] == "SIGUSR1").then_some(())
    })
    .await;

    let unknown = signal(node_and_secret, id, "db", "SIGHUP")
        .await
        .unwrap_err();
    assert_eq!(unknown.code(), Code::FailedPrecondition);
    assert!(
        unknown.message().contains("want one of server"),
        "{unknown}"
    );
    let denied = signal((&node, "other"), id, "", "SIGHUP")
        .await
        .unwrap_err();
    assert_eq!(denied.code(), Code::PermissionDenied);

    // The default ends the task, which the restart policy counts.
    signal(node_and_secret, id, "server", "SIGKILL")
        .await
        .unwrap();
    cluster.until(id, ClientStatus::Failed).await;
    let ended = signal(node_and_secret, id, "", "SIGHUP").await.unwrap_err();
    assert_eq!(ended.code(), Code::FailedPrecondition);
    assert!(ended.message().contains("no task"), "{ended}");
    place.is_empty().await;
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_driver_that_refuses_a_signal_is_named() {
    let place = Place::new();
    let (cluster, _gateway, node) = start(&place).await;
    let mut job = service("");
    let task = &mut job.task_groups[0].tasks[0];
    task.driver = "mock_driver".to_owned();
    let config = serde_json::json!({"run_for": "600s", "signal_error": "no signals today"});
    task.config = config.as_object().unwrap().clone();
    let id = cluster.assign(1, &job);
    cluster.until(id, ClientStatus::Running).await;
    let secret = secret(&cluster);
    let refused = signal((&node, &secret), id, "", "SIGHUP")
        .await
        .unwrap_err();
    assert_eq!(refused.code(), Code::FailedPrecondition);
    assert!(
        refused.message().contains("driver mock_driver")
            && refused.message().contains("no signals today"),
        "{refused}"
    );
    cluster.stop(id);
    cluster.until(id, ClientStatus::Complete).await;
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tasks_and_the_machine_are_measured() {
    let place = Place::new();
    let (cluster, _gateway, node) = start(&place).await;
    // Works in a child, as most tasks do.
    let id = cluster.assign(1, &service("echo up; (while :; do :; done) & wait"));
    cluster.until(id, ClientStatus::Running).await;
    place.said(id, "up").await;
    let secret = secret(&cluster);
    let measure = async |task: &str| {
        let request = v1::GetAllocationStatsRequest {
            alloc_id: id.to_string(),
            task: task.to_owned(),
        };
        let request = NodeAllocStatsRequest {
            request: Some(request),
            secret: secret.clone(),
        };
        client(&node).alloc_stats(request).await
    };
    let measured = wait_for("a busy task", LIMIT, async || {
        let measured = measure("").await.unwrap().into_inner();
        let cpu = measured.tasks.get("server")?.cpu?;
        (cpu.percent > 5.0 && cpu.mhz > 1.0).then_some(measured)
    })
    .await;
    let memory = measured.tasks["server"].memory.unwrap();
    assert!(memory.usage.unwrap() > 100_000, "{memory:?}");
    assert!(measured.measured_at_ns > 0);
    assert!(
        measure("other")
            .await
            .unwrap()
            .into_inner()
            .tasks
            .is_empty()
    );

    let secret = secret.clone();
    let request = NodeHostStatsRequest { secret };
    let usage = client(&node)
        .host_stats(request)
        .await
        .unwrap()
        .into_inner()
        .usage
        .unwrap();
    assert!(usage.memory.unwrap().total > 0 && !usage.cores.is_empty());
    assert!(
        usage.disks.iter().any(|disk| disk.has_allocations),
        "{:?}",
        usage.disks
    );
    let request = NodeHostStatsRequest::default();
    let denied = client(&node).host_stats(request).await.unwrap_err();
    assert_eq!(denied.code(), Code::PermissionDenied);
    cluster.stop(id);
    cluster.until(id, ClientStatus::Complete).await;
    place.is_empty().await;
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn scenario_080_dynamic_metadata_is_registered_and_survives_the_agent() {
    let place = Place::new();
    let cluster = Cluster::new();
    let gateway = Gateway::start(&cluster).await;
    let mut config = place.config(&[&gateway.address]);
    config.meta = [("rack", "r1"), ("zone", "a")]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into();
    let node = Running::start(config.clone()).await;
    let meta_of = |cluster: &Cluster| {
        let facts = cluster.facts();
        facts.registrations.last().map(|node| node.meta.clone())
    };
    wait_for("the registration", LIMIT, async || meta_of(&cluster)).await;
    let secret = secret(&cluster);
    let request = v1::ApplyNodeMetaRequest {
        node_id: String::new(),
        set: [("disk".to_owned(), "ssd".to_owned())].into(),
        unset: vec!["zone".to_owned()],
    };
    let request = NodeApplyMetaRequest {
        request: Some(request),
        secret: secret.clone(),
    };
    let applied = client(&node).apply_meta(request).await.unwrap();
    let applied = applied.into_inner().meta.unwrap();
    assert_eq!(applied.removed, ["zone"]);
    let merged =
        [("disk", "ssd"), ("rack", "r1")].map(|(name, value)| (name.to_owned(), value.to_owned()));
    assert_eq!(applied.merged, merged.clone().into());
    wait_for("the new registration", LIMIT, async || {
        meta_of(&cluster).filter(|meta| *meta == merged.clone().into())
    })
    .await;

    node.stop().await;
    cluster.facts().registrations.clear();
    let node = Running::start(config).await;
    let again = wait_for("the registration", LIMIT, async || meta_of(&cluster)).await;
    assert_eq!(again, merged.into());
    let read = client(&node).get_meta(NodeGetMetaRequest { secret }).await;
    let read = read.unwrap().into_inner().meta.unwrap();
    assert_eq!(read, applied);
    let large = v1::ApplyNodeMetaRequest {
        set: [("a".to_owned(), "x".repeat(20_000))].into(),
        ..v1::ApplyNodeMetaRequest::default()
    };
    let request = NodeApplyMetaRequest {
        request: Some(large),
        secret: cluster.facts().registrations[0].secret.clone(),
    };
    let refused = client(&node).apply_meta(request).await.unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument);
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refresh_looks_at_the_machine_and_names_what_has_changed() {
    let place = Place::new();
    let (cluster, _gateway, node) = start(&place).await;
    let id = cluster.assign(1, &service("echo up; exec sleep 600"));
    cluster.until(id, ClientStatus::Running).await;
    let secret = secret(&cluster);
    let refresh = async || {
        let request = NodeRefreshRequest {
            secret: secret.clone(),
        };
        client(&node).refresh(request).await
    };
    // The disk of the machine may have changed by itself: the answer is one of the node's words.
    let changed = refresh().await.unwrap().into_inner().changed;
    assert!(
        changed
            .iter()
            .all(|part| part == "attributes" || part == "resources"),
        "{changed:?}"
    );
    let denied = client(&node).refresh(NodeRefreshRequest::default()).await;
    assert_eq!(denied.unwrap_err().code(), Code::PermissionDenied);
    assert_eq!(cluster.status(id), Some(ClientStatus::Running));
    cluster.stop(id);
    cluster.until(id, ClientStatus::Complete).await;
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hangup_refreshes_the_agent_and_does_not_end_it() {
    let place = Place::new();
    let cluster = Cluster::new();
    let gateway = Gateway::start(&cluster).await;
    let agent = Process::start(&place, &gateway.address);
    let id = cluster.assign(1, &service("echo up; exec sleep 600"));
    cluster.until(id, ClientStatus::Running).await;
    agent.signal("HUP");
    wait_for("the look at the machine", LIMIT, async || {
        place.agent_said("looked at the machine").then_some(())
    })
    .await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    cluster.stop(id);
    cluster.until(id, ClientStatus::Complete).await;
    // An agent that ends before it has removed the task's supervisor leaves that to its next run.
    place.is_empty_but(&agent).await;
    agent.signal("TERM");
    assert_eq!(agent.ended().await, 0);
    place.is_empty().await;
}
