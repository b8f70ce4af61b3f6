//! A store on disk: its contents after a restart, and the errors for unusable files.

use std::path::{Path, PathBuf};

use embedded_etcd::{Config, Durability, EmbeddedEtcd, Error, storage::Disk};
use etcd_client::proto::{
    PbCompactionRequest, PbDeleteRequest, PbHashKvRequest, PbLeaseGrantRequest,
    PbLeaseTimeToLiveRequest, PbPutRequest, PbRangeRequest,
};
use redb::{Database, ReadableTable, TableDefinition};
use tempfile::TempDir;

use crate::support::raw::{Create, RawClient};

const RECORDS: TableDefinition<'_, (i64, i64), &[u8]> = TableDefinition::new("records");
const META: TableDefinition<'_, &str, i64> = TableDefinition::new("meta");

fn store_file() -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store");
    (directory, path)
}

async fn start(path: &Path) -> (EmbeddedEtcd, RawClient) {
    let store = EmbeddedEtcd::start(Config::on_disk(path)).await.unwrap();
    let client = RawClient::new(store.channel());
    (store, client)
}

fn put(key: &str, lease: i64) -> PbPutRequest {
    PbPutRequest {
        key: key.into(),
        value: b"v".to_vec(),
        lease,
        ..PbPutRequest::default()
    }
}

/// Makes a store of three puts, then has `damage` change its file behind its back.
async fn start_damaged(damage: impl FnOnce(&Database)) -> (String, PathBuf) {
    let (_directory, path) = store_file();
    let (store, mut client) = start(&path).await;
    for key in ["a", "b", "c"] {
        client.put(put(key, 0)).await.unwrap();
    }
    store.shutdown().await;
    let database = Database::open(&path).unwrap();
    damage(&database);
    drop(database);
    let error = EmbeddedEtcd::start(Config::on_disk(&path))
        .await
        .unwrap_err();
    assert!(matches!(error, Error::Corrupt { .. }), "{error}");
    (error.to_string(), path)
}

#[tokio::test]
async fn history_compaction_and_leases_come_back() {
    let (_directory, path) = store_file();
    let (store, mut client) = start(&path).await;
    let lease = PbLeaseGrantRequest { id: 7, ttl: 100 };
    client.lease_grant(lease).await.unwrap();
    for _ in 0..10 {
        client.put(put("k", 7)).await.unwrap();
    }
    client.put(put("gone", 0)).await.unwrap();
    let delete = PbDeleteRequest {
        key: b"gone".to_vec(),
        ..PbDeleteRequest::default()
    };
    client.delete_range(delete).await.unwrap();
    let compact = PbCompactionRequest {
        revision: 9,
        physical: false,
    };
    client.compact(compact).await.unwrap();
    let hash = client
        .hash_kv(PbHashKvRequest { revision: 0 })
        .await
        .unwrap();
    let before = client.status().await.unwrap();
    store.shutdown().await;

    let (store, mut client) = start(&path).await;
    let after = client.status().await.unwrap();
    assert_eq!(
        after.raft_term,
        before.raft_term + 1,
        "a restart can be told"
    );
    let mut hash_after = client
        .hash_kv(PbHashKvRequest { revision: 0 })
        .await
        .unwrap();
    hash_after.header.as_mut().unwrap().raft_term -= 1;
    assert_eq!(hash_after, hash);
    let compacted = PbRangeRequest {
        key: b"k".to_vec(),
        revision: 8,
        ..PbRangeRequest::default()
    };
    let status = client.range(compacted).await.unwrap_err();
    assert_eq!(status.code(), tonic::Code::OutOfRange);
    let request = PbLeaseTimeToLiveRequest { id: 7, keys: true };
    let lease = client.lease_time_to_live(request).await.unwrap();
    assert_eq!((lease.granted_ttl, lease.keys), (100, vec![b"k".to_vec()]));
    assert!(lease.ttl >= 95, "its full time, not {}", lease.ttl);

    let watch = Create {
        key: b"k".to_vec(),
        start_revision: 9,
        ..Create::default()
    };
    let (_requests, mut responses) = client.watch_unread(watch.to_union()).await;
    assert!(responses.message().await.unwrap().unwrap().created);
    let past = responses.message().await.unwrap().unwrap();
    let revisions: Vec<i64> = past
        .events
        .iter()
        .map(|event| event.kv.as_ref().unwrap().mod_revision)
        .collect();
    assert_eq!(revisions, [9, 10, 11]);
    store.shutdown().await;
}

#[tokio::test]
async fn the_revision_does_not_go_back_when_the_newest_records_are_compacted() {
    let (_directory, path) = store_file();
    let (store, mut client) = start(&path).await;
    client.put(put("k", 0)).await.unwrap();
    let delete = PbDeleteRequest {
        key: b"k".to_vec(),
        ..PbDeleteRequest::default()
    };
    let deleted = client.delete_range(delete).await.unwrap();
    let revision = deleted.header.unwrap().revision;
    let compact = PbCompactionRequest {
        revision,
        physical: true,
    };
    client.compact(compact).await.unwrap();
    store.shutdown().await;

    let (store, mut client) = start(&path).await;
    let next = client.put(put("k", 0)).await.unwrap();
    assert_eq!(next.header.unwrap().revision, revision + 1);
    store.shutdown().await;
}

#[tokio::test]
async fn compacted_revisions_are_gone_from_the_file() {
    let (_directory, path) = store_file();
    let (store, mut client) = start(&path).await;
    for _ in 0..10 {
        client.put(put("k", 0)).await.unwrap();
    }
    let compact = PbCompactionRequest {
        revision: 9,
        physical: true,
    };
    client.compact(compact).await.unwrap();
    store.shutdown().await;
    let (_, contents) = Disk::open(&path, Durability::Immediate).unwrap();
    let left = contents.records.iter().map(|record| record.revision.main);
    assert_eq!(left.collect::<Vec<_>>(), [9, 10, 11]);
    assert_eq!(contents.compact_revision, 9);
}

#[tokio::test]
async fn a_damaged_record_is_named_with_its_file() {
    let (message, path) = start_damaged(|database| {
        let write = database.begin_write().unwrap();
        {
            let mut records = write.open_table(RECORDS).unwrap();
            let mut entry = records.get((3, 0)).unwrap().unwrap().value().to_vec();
            *entry.last_mut().unwrap() ^= 1;
            records.insert((3, 0), entry.as_slice()).unwrap();
        }
        write.commit().unwrap();
    })
    .await;
    let expected = format!(
        "the store file {} is damaged: record 3/0 fails its checksum; restore it from a copy or \
         start with an empty one",
        path.display()
    );
    assert_eq!(message, expected);
}

#[tokio::test]
async fn a_file_of_another_format_is_not_touched() {
    let (message, path) = start_damaged(|database| {
        let write = database.begin_write().unwrap();
        write.open_table(META).unwrap().insert("format", 2).unwrap();
        write.commit().unwrap();
    })
    .await;
    assert!(message.contains(path.to_str().unwrap()), "{message}");
    assert!(message.contains("format version is 2"), "{message}");
}

#[tokio::test]
async fn a_file_that_is_in_use_or_no_store_is_refused_by_name() {
    let (_directory, path) = store_file();
    let (store, _client) = start(&path).await;
    let second = EmbeddedEtcd::start(Config::on_disk(&path))
        .await
        .unwrap_err();
    let expected = format!(
        "the store file {} is open in another process",
        path.display()
    );
    assert_eq!(second.to_string(), expected);
    store.shutdown().await;

    let (_directory, path) = store_file();
    std::fs::write(&path, b"no store, but a text of more than a few bytes").unwrap();
    let no_store = EmbeddedEtcd::start(Config::on_disk(&path))
        .await
        .unwrap_err();
    assert!(matches!(no_store, Error::Storage { action: "open", .. }));
    assert!(no_store.to_string().contains(path.to_str().unwrap()));
}

/// The supervisor of a store waits for its end, and abandons that wait to stop it.
#[tokio::test]
async fn a_shutdown_waits_for_the_disk_after_an_abandoned_wait() {
    let (_directory, path) = store_file();
    for _ in 0..10 {
        let (store, mut client) = start(&path).await;
        tokio::select! {
            biased;
            ended = store.stopped() => panic!("{ended:?}"),
            () = std::future::ready(()) => {}
        }
        client.put(put("k", 0)).await.unwrap();
        store.shutdown().await;
        // A store that had the file still would keep the next from it.
    }
    let (store, mut client) = start(&path).await;
    assert_eq!(client.status().await.unwrap().raft_term, 12);
    store.shutdown().await;
}
