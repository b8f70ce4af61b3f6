//! Tasks' output over the node's own RPC.

use model::{AllocId, ClientStatus};
use proto::internal::v1::NodeLogsRequest;
use proto::internal::v1::node_operations_client::NodeOperationsClient;
use proto::v1::{LogStream, LogsRequest};
use test_kit::wait_for;
use tonic::{Code, Status, Streaming};

use crate::gateway::{Cluster, LIMIT};
use crate::node::{Place, Running, service, start};

fn request(id: AllocId) -> LogsRequest {
    LogsRequest {
        alloc_id: id.to_string(),
        task: "server".to_owned(),
        stream: LogStream::Stdout.into(),
        ..LogsRequest::default()
    }
}

async fn logs(
    node: &Running,
    secret: &str,
    request: LogsRequest,
) -> Result<Streaming<proto::v1::LogsChunk>, Status> {
    let channel = service_kit::connect_lazy(&node.address).unwrap();
    let message = NodeLogsRequest {
        request: Some(request),
        secret: secret.to_owned(),
    };
    let response = NodeOperationsClient::new(channel).logs(message).await?;
    Ok(response.into_inner())
}

async fn text(mut stream: Streaming<proto::v1::LogsChunk>) -> String {
    let mut all = Vec::new();
    while let Some(chunk) = stream.message().await.unwrap() {
        all.extend(chunk.data);
    }
    String::from_utf8(all).unwrap()
}

fn secret(cluster: &Cluster) -> String {
    cluster.facts().registrations[0].secret.clone()
}

#[tokio::test]
async fn output_is_read_from_any_offset() {
    let place = Place::new();
    let (cluster, _gateway, node) = start(&place).await;
    let id = cluster.assign(
        1,
        &service("echo one; echo two; echo err >&2; exec sleep 600"),
    );
    place.said(id, "two\n").await;
    // The two streams come through pipes of their own.
    let errors = place
        .path()
        .join(format!("alloc/{id}/alloc/logs/server.stderr.0"));
    wait_for("the other stream", LIMIT, async || {
        (std::fs::read_to_string(&errors).ok()? == "err\n").then_some(())
    })
    .await;
    let secret = secret(&cluster);
    let whole = logs(&node, &secret, request(id)).await.unwrap();
    assert_eq!(text(whole).await, "one\ntwo\n");
    let tail = LogsRequest {
        offset: 4,
        from_end: true,
        ..request(id)
    };
    assert_eq!(
        text(logs(&node, &secret, tail).await.unwrap()).await,
        "two\n"
    );
    let errors = LogsRequest {
        stream: LogStream::Stderr.into(),
        ..request(id)
    };
    assert_eq!(
        text(logs(&node, &secret, errors).await.unwrap()).await,
        "err\n"
    );
    cluster.collect(id);
    place.is_empty().await;
    node.stop().await;
}

#[tokio::test]
async fn a_stream_follows_until_the_allocation_has_ended() {
    let place = Place::new();
    let (cluster, _gateway, node) = start(&place).await;
    // Ready for its end before it prints.
    let script = "trap 'echo end; exit 0' TERM; echo begin; while :; do sleep 0.02; done";
    let mut job = service(script);
    job.task_groups[0].tasks[0].kill_signal = "SIGTERM".to_owned();
    let id = cluster.assign(1, &job);
    place.said(id, "begin").await;
    cluster.until(id, ClientStatus::Running).await;
    let following = LogsRequest {
        follow: true,
        ..request(id)
    };
    let mut stream = logs(&node, &secret(&cluster), following).await.unwrap();
    assert_eq!(stream.message().await.unwrap().unwrap().data, b"begin\n");
    cluster.stop(id);
    assert_eq!(
        text(stream).await,
        "end\n",
        "the last words, then the end of the stream"
    );
    place.is_empty().await;
    node.stop().await;
}

#[tokio::test]
async fn a_wrong_secret_is_refused() {
    let place = Place::new();
    let (cluster, _gateway, node) = start(&place).await;
    let id = cluster.assign(1, &service("exec sleep 600"));
    cluster.until(id, ClientStatus::Running).await;
    let good = secret(&cluster);
    let stranger = AllocId::from_random(77);
    for (secret, asked, code) in [
        ("", request(id), Code::PermissionDenied),
        ("guess", request(id), Code::PermissionDenied),
        (good.as_str(), request(stranger), Code::NotFound),
        (
            &good,
            LogsRequest {
                task: "other".to_owned(),
                ..request(id)
            },
            Code::NotFound,
        ),
        (
            &good,
            LogsRequest {
                task: "../x".to_owned(),
                ..request(id)
            },
            Code::NotFound,
        ),
        (
            &good,
            LogsRequest {
                stream: 0,
                ..request(id)
            },
            Code::InvalidArgument,
        ),
        (
            &good,
            LogsRequest {
                alloc_id: "x".to_owned(),
                ..request(id)
            },
            Code::InvalidArgument,
        ),
    ] {
        let status = logs(&node, secret, asked).await.err().unwrap();
        assert_eq!(status.code(), code, "{status}");
    }
    // As for an allocation that was collected.
    let status = logs(&node, &good, request(stranger)).await.err().unwrap();
    let says_why = status
        .message()
        .contains("has removed its directory with the logs");
    assert!(says_why, "{status}");
    cluster.collect(id);
    place.is_empty().await;
    node.stop().await;
}
