//! The public API, driven by the client that the services use.

use std::time::Duration;

use embedded_etcd::{Config, EmbeddedEtcd};
use etcd_client::{
    Channel, Client, Compare, CompareOp, EventType, GetOptions, PutOptions, Txn, TxnOp,
    WatchOptions,
};
use tokio::{net::TcpListener, time::timeout};
use tokio_util::sync::CancellationToken;

/// No step of a test on loopback takes this long.
const WAIT_LIMIT: Duration = Duration::from_secs(10);

async fn client(store: &EmbeddedEtcd) -> Client {
    Client::from_channel(Channel::Tonic(store.channel()), None)
        .await
        .unwrap()
}

#[tokio::test]
async fn a_watch_sees_the_writes_of_a_txn_in_one_message() {
    let store = EmbeddedEtcd::start(Config::in_memory()).await.unwrap();
    let mut client = client(&store).await;
    let mut watch = client
        .watch("a", Some(WatchOptions::new().with_prefix()))
        .await
        .unwrap();
    let created = timeout(WAIT_LIMIT, watch.message()).await.unwrap().unwrap();
    assert!(created.is_some_and(|message| message.created()));
    let txn = Txn::new()
        .when([Compare::create_revision("a1", CompareOp::Equal, 0)])
        .and_then([TxnOp::put("a1", "x", None), TxnOp::put("a2", "y", None)]);
    let response = client.txn(txn).await.unwrap();
    assert!(response.succeeded());

    let message = timeout(WAIT_LIMIT, watch.message())
        .await
        .unwrap()
        .unwrap()
        .unwrap();
    let keys: Vec<_> = message
        .events()
        .iter()
        .map(|event| (event.event_type(), event.kv().unwrap().key_str().unwrap()))
        .collect();
    assert_eq!(keys, [(EventType::Put, "a1"), (EventType::Put, "a2")]);
    store.shutdown().await;
}

#[tokio::test]
async fn the_keys_of_a_lease_go_with_it() {
    let store = EmbeddedEtcd::start(Config::in_memory()).await.unwrap();
    let mut client = client(&store).await;
    let lease = client.lease_grant(60, None).await.unwrap().id();
    let with_lease = PutOptions::new().with_lease(lease);
    client.put("k", "v", Some(with_lease)).await.unwrap();
    client.lease_revoke(lease).await.unwrap();
    let count_only = GetOptions::new().with_count_only();
    let response = client.get("k", Some(count_only)).await.unwrap();
    assert_eq!(response.count(), 0);
    store.shutdown().await;
}

#[tokio::test]
async fn the_same_store_is_served_over_tcp() {
    let store = EmbeddedEtcd::start(Config::in_memory()).await.unwrap();
    client(&store).await.put("k", "v", None).await.unwrap();

    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let shutdown = CancellationToken::new();
    let serving = tokio::spawn(store.serve(listener, shutdown.clone()));
    let mut over_tcp = Client::connect([&address], None).await.unwrap();
    let response = over_tcp.get("k", None).await.unwrap();
    assert_eq!(response.kvs()[0].value(), b"v");
    let members = over_tcp.member_list().await.unwrap();
    assert_eq!(
        members.members()[0].client_urls(),
        [format!("http://{address}")]
    );

    // An open watch does not hold the listener up.
    let _watch = over_tcp.watch("k", None).await.unwrap();
    shutdown.cancel();
    timeout(WAIT_LIMIT, serving)
        .await
        .unwrap()
        .unwrap()
        .unwrap();
    timeout(WAIT_LIMIT, store.shutdown()).await.unwrap();
}

#[tokio::test]
async fn a_store_on_disk_is_there_after_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let config = || Config::on_disk(directory.path().join("store"));
    let store = EmbeddedEtcd::start(config()).await.unwrap();
    let revision = client(&store)
        .await
        .put("k", "v", None)
        .await
        .unwrap()
        .header()
        .unwrap()
        .revision();
    store.shutdown().await;

    let store = EmbeddedEtcd::start(config()).await.unwrap();
    let response = client(&store).await.get("k", None).await.unwrap();
    assert_eq!(response.kvs()[0].value(), b"v");
    assert_eq!(response.kvs()[0].mod_revision(), revision);
    assert_eq!(response.header().unwrap().revision(), revision);
    store.shutdown().await;
}
