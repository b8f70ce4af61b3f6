//! Watches over gRPC whose reader is slow or gone.

use embedded_etcd::{Config, EmbeddedEtcd};
use etcd_client::proto::{PbPutRequest, PbTxnOpRequest, PbTxnRequest, PbTxnRequestOp};

use crate::support::{
    WAIT_LIMIT,
    raw::{Create, RawClient},
};

/// More than a queue (16,384 events) and a stream's window (4 MiB) hold: 22,000 events, 44 MiB.
const TXNS: usize = 220;
const PUTS: usize = 100;
const VALUE_BYTES: usize = 2_048;

fn txn(number: usize) -> PbTxnRequest {
    let op = |position| PbTxnRequestOp {
        request: Some(PbTxnOpRequest::RequestPut(PbPutRequest {
            key: format!("k{position:03}").into_bytes(),
            value: vec![u8::try_from(number % 256).unwrap(); VALUE_BYTES],
            ..PbPutRequest::default()
        })),
    };
    PbTxnRequest {
        success: (0..PUTS).map(op).collect(),
        ..PbTxnRequest::default()
    }
}

#[tokio::test]
async fn a_reader_that_pauses_gets_everything_afterwards() {
    let store = EmbeddedEtcd::start(Config::in_memory()).await.unwrap();
    let mut client = RawClient::new(store.channel());
    // Connections of their own: what one does not read must not hold the other up.
    let mut slow = RawClient::new(store.channel());
    let create = Create {
        key: b"k".to_vec(),
        range_end: b"l".to_vec(),
        ..Create::default()
    };
    let (_requests, mut responses) = slow.watch_unread(create.to_union()).await;
    for number in 0..TXNS {
        client.txn(txn(number)).await.unwrap();
    }
    let mut revisions = Vec::new();
    while revisions.len() < TXNS * PUTS {
        let response = tokio::time::timeout(WAIT_LIMIT, responses.message()).await;
        let response = response.unwrap().unwrap().unwrap();
        let events = response.events.iter();
        revisions.extend(events.map(|event| event.kv.as_ref().unwrap().mod_revision));
    }
    let first = 2;
    let expected = (0..TXNS * PUTS).map(|position| first + i64::try_from(position / PUTS).unwrap());
    assert!(revisions.into_iter().eq(expected));
    store.shutdown().await;
}

#[tokio::test]
async fn a_store_that_stops_tells_its_watches() {
    let store = EmbeddedEtcd::start(Config::in_memory()).await.unwrap();
    let mut client = RawClient::new(store.channel());
    let create = Create {
        key: b"k".to_vec(),
        ..Create::default()
    };
    let (_requests, mut responses) = client.watch_unread(create.to_union()).await;
    assert!(responses.message().await.unwrap().unwrap().created);
    let shutdown = tokio::spawn(store.shutdown());
    let answer = tokio::time::timeout(WAIT_LIMIT, responses.message()).await;
    let status = answer.unwrap().unwrap_err();
    assert_eq!(status.code(), tonic::Code::Unavailable);
    tokio::time::timeout(WAIT_LIMIT, shutdown)
        .await
        .unwrap()
        .unwrap();
    // New clients are refused.
    assert_eq!(
        client.status().await.unwrap_err().code(),
        tonic::Code::Unavailable
    );
}
