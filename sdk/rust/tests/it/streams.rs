//! Streams that go on after a break.

use std::time::Duration;

use futures::TryStreamExt as _;
use kafila_client::{Code, FollowEvents, FollowLogs, v1};
use tonic::Status;

use crate::gateway::{Gateway, Reply, answer, client, encoded};

fn batch(index: u64) -> bytes::Bytes {
    let event = v1::Event {
        index,
        ..Default::default()
    };
    encoded(&v1::EventBatch {
        index,
        events: vec![event],
    })
}

fn bookmark(index: u64) -> bytes::Bytes {
    encoded(&v1::EventBatch {
        index,
        events: Vec::new(),
    })
}

#[tokio::test]
async fn events_go_on_after_the_last_batch_at_another_gateway() {
    let first = Gateway::start(vec![Reply::Broken(vec![batch(3), bookmark(7)])]).await;
    let second = Gateway::start(vec![Reply::Messages(vec![batch(9)])]).await;
    let client = client(&[&first, &second]);
    let what = FollowEvents {
        index: 2,
        ..Default::default()
    };
    let mut events = Box::pin(client.follow_events(what));
    for expected in [3, 9] {
        let batch = events.try_next().await.unwrap().unwrap();
        assert_eq!(batch.index, expected);
    }
    let asked = |gateway: &Gateway| gateway.seen()[0].read::<v1::StreamEventsRequest>().index;
    assert_eq!((asked(&first), asked(&second)), (2, 8));
}

#[tokio::test]
async fn a_compacted_index_ends_the_events() {
    let gone = Reply::Refuse(Status::out_of_range("index 2 is compacted"));
    let gateway = Gateway::start(vec![gone]).await;
    let client = client(&[&gateway]);
    let mut events = Box::pin(client.follow_events(FollowEvents::default()));
    let error = events.try_next().await.unwrap_err();
    assert_eq!(error.code(), Code::OutOfRange);
}

#[tokio::test]
async fn an_outage_of_events_ends_with_its_error() {
    let away = || Reply::Refuse(Status::unavailable("etcd has no leader"));
    let gateway = Gateway::start((0..100).map(|_| away()).collect()).await;
    let client = client(&[&gateway]);
    let what = FollowEvents {
        longest_outage: Some(Duration::from_millis(100)),
        ..Default::default()
    };
    let mut events = Box::pin(client.follow_events(what));
    let error = events.try_next().await.unwrap_err();
    assert_eq!(error.code(), Code::Unavailable);
}

fn chunk(data: &str) -> bytes::Bytes {
    encoded(&v1::LogsChunk {
        data: data.as_bytes().to_vec(),
    })
}

fn started(status: &str, index: u64) -> Reply {
    answer(&v1::GetAllocationResponse {
        meta: Some(v1::QueryMeta {
            index,
            ..Default::default()
        }),
        allocation: Some(v1::Allocation {
            client_status: status.to_owned(),
            ..Default::default()
        }),
    })
}

#[tokio::test]
async fn logs_wait_for_the_start_and_go_on_after_the_last_byte() {
    let replies = vec![
        started("pending", 4),
        started("running", 5),
        Reply::Broken(vec![chunk("one\n")]),
        Reply::Messages(vec![chunk("two\n")]),
    ];
    let gateway = Gateway::start(replies).await;
    let what = FollowLogs {
        alloc_id: "a".to_owned(),
        task: "web".to_owned(),
        ..Default::default()
    };
    let logs = client(&[&gateway]).follow_logs(what);
    let chunks: Vec<_> = logs.try_collect().await.unwrap();
    assert_eq!(chunks.concat(), b"one\ntwo\n");
    let again: v1::LogsRequest = gateway.seen()[3].read();
    assert_eq!((again.offset, again.follow), (4, true));
}

#[tokio::test]
async fn a_tail_does_not_go_on_after_a_break() {
    let replies = vec![started("running", 5), Reply::Broken(vec![chunk("one\n")])];
    let gateway = Gateway::start(replies).await;
    let what = FollowLogs {
        alloc_id: "a".to_owned(),
        task: "web".to_owned(),
        tail_bytes: Some(100),
        ..Default::default()
    };
    let mut logs = Box::pin(client(&[&gateway]).follow_logs(what));
    assert_eq!(logs.try_next().await.unwrap().unwrap(), b"one\n");
    assert!(logs.try_next().await.is_err());
}
