//! Requests that a node answers: files, signals, measurements, metadata, a new fingerprint.

use std::sync::atomic::Ordering;

use proto::v1;
use test_kit::wait_for;
use tonic::Code;

use crate::logs::{CHUNK, Files, suite_with_node};
use crate::support::{WAIT_LIMIT, ask};

#[tokio::test]
async fn files_are_relayed_and_the_nodes_refusals_keep_their_code() {
    let files = Files::default();
    let (suite, _, request) = suite_with_node(&files).await;
    let alloc_id = request.alloc_id.clone();
    let mut client = suite.allocations(0);
    let list = v1::ListFilesRequest {
        alloc_id: alloc_id[..8].to_owned(),
        path: "alloc/logs".to_owned(),
    };
    let list = client.list_files(ask(list)).await.unwrap().into_inner();
    let names: Vec<_> = list.files.iter().map(|file| file.name.as_str()).collect();
    assert_eq!(names, [alloc_id.as_str(), "alloc/logs"]);
    let get = v1::GetFileRequest {
        alloc_id: alloc_id.clone(),
        path: "web/secrets/x".to_owned(),
    };
    let refused = client.get_file(ask(get)).await.unwrap_err();
    assert_eq!(refused.code(), Code::PermissionDenied);
    assert!(refused.message().contains("holds secrets"), "{refused}");
    let unknown = v1::ListFilesRequest {
        alloc_id: "00000000-0000-0000-0000-00000000dead".to_owned(),
        path: String::new(),
    };
    let unknown = client.list_files(ask(unknown)).await.unwrap_err();
    assert_eq!(unknown.code(), Code::NotFound);

    // A caller that does not read holds the node back; one that goes ends the relay.
    let read = v1::ReadFileRequest {
        alloc_id,
        path: "alloc/data/huge".to_owned(),
        ..v1::ReadFileRequest::default()
    };
    let mut chunks = client.read_file(ask(read)).await.unwrap().into_inner();
    chunks.message().await.unwrap().unwrap();
    let in_flight = wait_for("the node to be held back", WAIT_LIMIT, async || {
        let before = files.chunks.load(Ordering::SeqCst);
        tokio::time::sleep(std::time::Duration::from_millis(200)).await;
        (files.chunks.load(Ordering::SeqCst) == before).then_some(before)
    })
    .await;
    assert!(
        in_flight * CHUNK < 32 << 20,
        "{in_flight} chunks are in flight"
    );
    drop(chunks);
    wait_for("the relay to end", WAIT_LIMIT, async || {
        let metrics = suite.metrics(0).await;
        metrics
            .contains("kafila_api_gateway_file_relays 0\n")
            .then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_signal_without_an_answer_may_have_been_sent() {
    let (suite, _, request) = suite_with_node(&Files::default()).await;
    let mut client = suite.allocations(0);
    let signal = |task: &str, signal: &str| v1::SignalAllocationRequest {
        alloc_id: request.alloc_id.clone(),
        task: task.to_owned(),
        signal: signal.to_owned(),
    };
    let sent = client.signal(ask(signal("", "hup"))).await.unwrap();
    let sent = sent.into_inner();
    assert_eq!(
        (sent.signal.as_str(), sent.tasks),
        ("SIGHUP", vec!["server".to_owned()])
    );
    let sent = client.signal(ask(signal("", ""))).await.unwrap();
    assert_eq!(sent.into_inner().signal, "SIGKILL");
    let open = client
        .signal(ask(signal("server", "HUP")))
        .await
        .unwrap_err();
    assert_eq!(open.code(), Code::Unknown);
    assert!(open.message().contains("may have been sent"), "{open}");
    for (task, name, why) in [
        ("", "SIGHUB", "did you mean"),
        ("db", "HUP", "want one of server"),
    ] {
        let refused = client.signal(ask(signal(task, name))).await.unwrap_err();
        assert_eq!(refused.code(), Code::InvalidArgument);
        assert!(refused.message().contains(why), "{refused}");
    }
}

#[tokio::test]
async fn an_older_agent_is_named_and_a_node_is_asked_by_the_start_of_its_id() {
    let (suite, node, request) = suite_with_node(&Files::default()).await;
    let stats = v1::GetAllocationStatsRequest {
        alloc_id: request.alloc_id,
        task: String::new(),
    };
    let old = suite.allocations(0).get_stats(ask(stats)).await;
    let old = old.unwrap_err();
    assert_eq!(old.code(), Code::FailedPrecondition);
    assert!(old.message().contains("runs an older agent"), "{old}");

    let mut nodes = suite.nodes(0);
    let node_id = node.id.to_string()[..8].to_owned();
    let get = v1::GetNodeStatsRequest {
        node_id: node_id.clone(),
    };
    let usage = nodes.get_stats(ask(get)).await.unwrap().into_inner().usage;
    assert_eq!(usage.unwrap().uptime_seconds, 7);
    let get = v1::GetNodeMetaRequest {
        node_id: node_id.clone(),
    };
    assert!(
        nodes
            .get_meta(ask(get))
            .await
            .unwrap()
            .into_inner()
            .meta
            .is_some()
    );
    let apply = |name: &str| v1::ApplyNodeMetaRequest {
        node_id: node_id.clone(),
        set: [(name.to_owned(), "r1".to_owned())].into(),
        unset: vec!["zone".to_owned()],
    };
    let applied = nodes.apply_meta(ask(apply("rack"))).await.unwrap();
    let applied = applied.into_inner().meta.unwrap();
    assert_eq!(
        (&*applied.dynamic["rack"], &applied.removed[..]),
        ("r1", &["zone".to_owned()][..])
    );
    let refused = nodes.apply_meta(ask(apply("a b"))).await.unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument);
    assert!(refused.message().contains("set[\"a b\"]"), "{refused}");
    let refresh = v1::RefreshNodeRequest { node_id };
    let changed = nodes.refresh(ask(refresh)).await.unwrap().into_inner();
    assert_eq!(changed.changed, ["resources"]);
}
