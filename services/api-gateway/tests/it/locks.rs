//! Locks of variables through two gateways over an embedded etcd.

use std::time::Duration;

use proto::v1;
use test_kit::wait_for;
use tonic::{Code, Status};

use crate::support::{Suite, ask};

const KEY: &str = "6161616161616161616161616161616161616161616161616161616161616161";

/// The lock and its delay take 13 s.
const LEASE_LIMIT: Duration = Duration::from_secs(60);

struct Cluster {
    suite: Suite,
    _directory: tempfile::TempDir,
}

impl Cluster {
    async fn start() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let key_file = directory.path().join("keyring_key");
        std::fs::write(&key_file, KEY).unwrap();
        let suite = Suite::start_with(2, |config| {
            config.keyring_key_file = Some(key_file.clone());
        });
        Self {
            suite: suite.await,
            _directory: directory,
        }
    }

    async fn acquire(&self, gateway: usize, lock_id: &str) -> Result<v1::VariableLock, Status> {
        let request = v1::AcquireLockRequest {
            path: "app/leader".to_owned(),
            lock_id: lock_id.to_owned(),
            ..v1::AcquireLockRequest::default()
        };
        let mut variables = self.suite.variables(gateway);
        let answer = variables.acquire_lock(ask(request));
        Ok(answer.await?.into_inner().lock.unwrap())
    }

    async fn renew(&self, lock_id: &str) -> Result<v1::VariableLock, Status> {
        let request = v1::RenewLockRequest {
            path: "app/leader".to_owned(),
            lock_id: lock_id.to_owned(),
            ..v1::RenewLockRequest::default()
        };
        let answer = self.suite.variables(1).renew_lock(ask(request)).await?;
        Ok(answer.into_inner().lock.unwrap())
    }

    async fn release(&self, lock_id: &str) -> Result<(), Status> {
        let request = v1::ReleaseLockRequest {
            path: "app/leader".to_owned(),
            lock_id: lock_id.to_owned(),
            ..v1::ReleaseLockRequest::default()
        };
        let answer = self.suite.variables(1).release_lock(ask(request)).await;
        answer.map(drop)
    }

    async fn put(&self, value: &str, lock_id: &str) -> Result<v1::Variable, Status> {
        let request = v1::PutVariableRequest {
            path: "app/leader".to_owned(),
            items: [("value".to_owned(), value.to_owned())].into(),
            lock_id: lock_id.to_owned(),
            ..v1::PutVariableRequest::default()
        };
        let answer = self.suite.variables(0).put(ask(request)).await?;
        Ok(answer.into_inner().variable.unwrap())
    }

    async fn delete(&self, lock_id: &str) -> Result<(), Status> {
        let request = v1::DeleteVariableRequest {
            path: "app/leader".to_owned(),
            lock_id: lock_id.to_owned(),
            ..v1::DeleteVariableRequest::default()
        };
        self.suite.variables(0).delete(ask(request)).await.map(drop)
    }

    async fn get(&self) -> v1::Variable {
        let request = v1::GetVariableRequest {
            path: "app/leader".to_owned(),
            ..v1::GetVariableRequest::default()
        };
        let answer = self.suite.variables(1).get(ask(request)).await.unwrap();
        answer.into_inner().variable.unwrap()
    }
}

fn refused<T: std::fmt::Debug>(answer: Result<T, Status>, part: &str) {
    let status = answer.unwrap_err();
    assert_eq!(status.code(), Code::Aborted, "{status:?}");
    assert!(status.message().contains(part), "{status:?}");
}

#[tokio::test]
async fn a_lock_keeps_others_out_until_its_release_and_leaves_the_items() {
    let cluster = Cluster::start().await;
    let stored = cluster.put("1", "").await.unwrap();
    let lock = cluster.acquire(0, "one").await.unwrap();
    assert_eq!(lock.lock_id, "one");
    assert_eq!(lock.ttl.map(|ttl| ttl.seconds), Some(15));
    refused(cluster.acquire(1, "two").await, "locked already, by one");
    assert_eq!(cluster.acquire(1, "one").await.unwrap(), lock);
    assert_eq!(cluster.renew("one").await.unwrap(), lock);
    refused(cluster.renew("two").await, "doesn't hold a lock");

    refused(cluster.put("2", "").await, "is locked by one");
    refused(cluster.put("1", "").await, "is locked by one");
    refused(cluster.put("2", "two").await, "doesn't hold a lock");
    refused(cluster.delete("").await, "is locked by one");
    let changed = cluster.put("2", "one").await.unwrap();
    assert_eq!(changed.lock.as_ref(), Some(&lock));
    let shown = cluster.get().await;
    assert_eq!(
        (shown.lock.as_ref(), &shown.items["value"]),
        (Some(&lock), &"2".to_owned())
    );
    let mut variables = cluster.suite.variables(1);
    let listed = variables.list(ask(v1::ListVariablesRequest::default()));
    let listed = listed.await.unwrap().into_inner().variables;
    assert_eq!(listed[0].lock.as_ref(), Some(&lock));

    refused(cluster.release("two").await, "doesn't hold a lock");
    cluster.release("one").await.unwrap();
    refused(cluster.release("one").await, "doesn't hold a lock");
    let free = cluster.get().await;
    assert_eq!((free.lock, free.modify_index), (None, changed.modify_index));
    assert!(free.modify_index > stored.modify_index);
    cluster.acquire(0, "two").await.expect("at once");
    cluster.delete("two").await.unwrap();
    cluster.release("two").await.unwrap();
}

#[tokio::test]
async fn of_many_contenders_one_has_the_lock() {
    let cluster = Cluster::start().await;
    let ids: Vec<String> = (0..12).map(|number| format!("c-{number}")).collect();
    let tries = ids
        .iter()
        .enumerate()
        .map(|(number, id)| cluster.acquire(number % 2, id));
    let answers = futures::future::join_all(tries).await;
    let held: Vec<_> = answers.into_iter().filter_map(Result::ok).collect();
    assert_eq!(held.len(), 1, "{held:?}");
    cluster.renew(&held[0].lock_id).await.unwrap();
}

#[tokio::test]
async fn scenario_091_a_lock_that_is_not_renewed_is_in_its_delay_and_then_free() {
    let cluster = Cluster::start().await;
    let before = cluster.put("1", "").await.unwrap();
    let seconds = |seconds| Some(prost_types::Duration { seconds, nanos: 0 });
    let request = |id: &str| v1::AcquireLockRequest {
        path: "app/leader".to_owned(),
        lock_id: id.to_owned(),
        // The shortest that is allowed.
        ttl: seconds(10),
        delay: seconds(3),
        ..v1::AcquireLockRequest::default()
    };
    let acquire = async |gateway: usize, id: &str| {
        let mut variables = cluster.suite.variables(gateway);
        variables.acquire_lock(ask(request(id))).await
    };
    acquire(0, "dead").await.unwrap();
    wait_for("the end of the lock", LEASE_LIMIT, async || {
        let refusal = acquire(1, "next").await.expect_err("not before the delay");
        refusal.message().contains("was lost").then_some(())
    })
    .await;
    refused(cluster.renew("dead").await, "doesn't hold a lock");
    refused(cluster.put("2", "dead").await, "doesn't hold a lock");
    refused(cluster.put("2", "").await, "is locked by dead");
    wait_for("the end of the delay", LEASE_LIMIT, async || {
        acquire(1, "next").await.ok()
    })
    .await;
    let after = cluster.get().await;
    assert_eq!(
        (after.items, after.modify_index),
        (before.items, before.modify_index)
    );
    assert_eq!(after.lock.unwrap().lock_id, "next");
}

#[tokio::test]
async fn requests_are_checked() {
    let cluster = Cluster::start().await;
    let acquire = async |edit: fn(&mut v1::AcquireLockRequest)| {
        let mut request = v1::AcquireLockRequest {
            path: "app/leader".to_owned(),
            ..v1::AcquireLockRequest::default()
        };
        edit(&mut request);
        cluster.suite.variables(0).acquire_lock(ask(request)).await
    };
    for (edit, part) in [
        (
            (|it| {
                it.ttl = Some(prost_types::Duration {
                    seconds: 9,
                    nanos: 0,
                })
            }) as fn(&mut v1::AcquireLockRequest),
            "TTL must be between 10 seconds and 24 hours",
        ),
        (|it| it.path = "a//b".to_owned(), "invalid path"),
        (
            |it| it.namespace = "absent".to_owned(),
            "nonexistent namespace",
        ),
        (|it| it.lock_id = "x".repeat(65), "at most 64"),
    ] {
        let status = acquire(edit).await.unwrap_err();
        assert_eq!(status.code(), Code::InvalidArgument, "{status:?}");
        assert!(status.message().contains(part), "{status:?}");
    }
    let chosen = acquire(|_| ()).await.unwrap().into_inner().lock.unwrap();
    assert_eq!(chosen.lock_id.len(), 36, "{chosen:?}");
}
