//! Without a store: stale reads and sessions of nodes still work, and other requests say why not.

use proto::internal::v1::{HeartbeatRequest, WatchAllocationsRequest};
use proto::v1;
use test_kit::proxy::Mode;
use tonic::Code;

use crate::support::{Suite, WAIT_LIMIT, alloc, ask, job, node, stale};

#[tokio::test]
async fn without_a_store_stale_reads_and_nodes_go_on_and_the_rest_says_why_not() {
    let suite = Suite::start_with(1, |config| {
        config.request_timeout = std::time::Duration::from_millis(300);
        // There is no controller: heartbeats are accepted for half of this.
        config.heartbeat_ttl = std::time::Duration::from_secs(3_600);
    })
    .await;
    let (job, node) = (job("web"), node(1));
    suite.put_node(&node).await;
    let registered = suite.register(&job).await;
    suite
        .put_alloc(&alloc(1, &job, &node, registered.index))
        .await;
    let get = |options| v1::GetJobRequest {
        options,
        job_id: "web".to_owned(),
        version: None,
    };
    // Linearizable: now the replica has it all.
    suite.jobs(0).get(ask(get(None))).await.unwrap();
    let list = v1::ListAllocationsRequest::default();
    suite.allocations(0).list(ask(list)).await.unwrap();

    suite.proxy.set(Mode::Cut);
    let shown = suite
        .jobs(0)
        .get(ask(get(stale())))
        .await
        .unwrap()
        .into_inner();
    assert_eq!(shown.job.unwrap().job_modify_index, Some(registered.index));

    let status = suite.jobs(0).get(ask(get(None))).await.unwrap_err();
    assert_eq!(status.code(), Code::Unavailable, "{status}");
    // The command cannot ask for stale answers, and its users do not read Rust.
    let message = status.message();
    assert!(message.contains("fresh state"), "{message}");
    assert!(!message.contains("::"), "{message}");
    let register = v1::RegisterJobRequest {
        job: Some((&job).into()),
        ..Default::default()
    };
    let status = suite.jobs(0).register(ask(register)).await.unwrap_err();
    assert_eq!(status.code(), Code::Unavailable, "{status}");
    assert!(
        v1::ErrorDetail::from_status(&status)
            .unwrap()
            .retry_after()
            .is_some()
    );

    let heartbeat = HeartbeatRequest {
        node_id: node.id.to_string(),
        secret: node.secret.clone(),
    };
    suite.sessions(0).heartbeat(ask(heartbeat)).await.unwrap();
    let watch = WatchAllocationsRequest {
        node_id: node.id.to_string(),
        secret: node.secret.clone(),
        seen_revision: 0,
    };
    let mut updates = suite
        .sessions(0)
        .watch_allocations(ask(watch))
        .await
        .unwrap()
        .into_inner();
    let update = updates.message().await.unwrap().unwrap();
    assert_eq!((update.full, update.assignments.len()), (true, 1));
}

#[tokio::test]
async fn a_request_that_the_store_does_not_answer_ends_with_its_time() {
    let timeout = std::time::Duration::from_secs(1);
    let suite = Suite::start_with(1, |config| config.request_timeout = timeout).await;
    suite.register(&job("web")).await;
    suite.proxy.set(Mode::Hold);
    let register = v1::RegisterJobRequest {
        job: Some((&job("api")).into()),
        ..Default::default()
    };
    let began = tokio::time::Instant::now();
    let status = suite.jobs(0).register(ask(register)).await.unwrap_err();
    let waited = began.elapsed();
    assert_eq!(status.code(), Code::Unavailable, "{status}");
    // A moment is left for a loaded machine; the store's client alone would wait for 5 s.
    assert!(waited < timeout * 3, "{waited:?}");
}

#[tokio::test]
async fn a_gateway_finds_back_to_the_store_and_shows_what_it_missed() {
    let suite = Suite::start(1).await;
    suite.register(&job("web")).await;
    suite.proxy.set(Mode::Cut);
    // Written by a client that still reaches the store.
    suite.put_node(&node(1)).await;
    let list = v1::ListNodesRequest { options: stale() };
    assert_eq!(
        suite
            .nodes(0)
            .list(ask(list))
            .await
            .unwrap()
            .into_inner()
            .nodes,
        []
    );
    suite.proxy.set(Mode::Open);
    let shown = test_kit::wait_for("the gateway to catch up", WAIT_LIMIT, async || {
        suite
            .nodes(0)
            .list(ask(v1::ListNodesRequest::default()))
            .await
            .ok()
    })
    .await;
    assert_eq!(shown.into_inner().nodes.len(), 1);
}
