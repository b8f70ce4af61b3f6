//! The loop: batches, the order of storing, publishing and answering, and the clock.

use std::sync::Mutex;

use etcd_client::proto::{PbLeaseGrantRequest, PbPutRequest, PbRangeRequest, PbResponseHeader};
use tokio::task::JoinHandle;

use super::*;
use crate::{
    config::{Config, Durability},
    machine::Identity,
    storage::{Disk, Scripted},
};

fn machine() -> Machine {
    let identity = Identity {
        cluster_id: 1,
        member_id: 2,
        raft_term: 3,
    };
    Machine::new(identity, &Config::in_memory())
}

fn scripted<F>(commit: impl Fn(Vec<Change>) -> F + Send + Sync + 'static) -> Backend
where
    F: Future<Output = Result<(), Error>> + Send + 'static,
{
    Backend::Scripted(Scripted(Arc::new(move |changes| Box::pin(commit(changes)))))
}

fn put(handle: &Handle, key: &str, lease: i64) -> JoinHandle<Result<(), ApiError>> {
    let handle = handle.clone();
    let request = PbPutRequest {
        key: key.into(),
        lease,
        ..PbPutRequest::default()
    };
    tokio::spawn(async move {
        let answer = handle.call(|machine, _| machine.put(request)).await?;
        answer.map(drop)
    })
}

fn count(handle: &Handle, key: &str) -> i64 {
    let request = PbRangeRequest {
        key: key.into(),
        ..PbRangeRequest::default()
    };
    let answer = handle.read(|machine| machine.range(request)).unwrap();
    answer.into_response(PbResponseHeader::default()).count
}

/// Lets all other tasks get on until they wait.
async fn settle() {
    tokio::time::sleep(Duration::from_millis(1)).await;
}

#[tokio::test(start_paused = true)]
async fn requests_that_wait_together_are_stored_in_one_piece() {
    let commits = Arc::new(Mutex::new(Vec::new()));
    let backend = scripted({
        let commits = Arc::clone(&commits);
        move |changes| {
            commits.lock().unwrap().push(changes.len());
            async { Ok(()) }
        }
    });
    let (driver, handle) = Loop::new(machine(), backend);
    let puts: Vec<_> = (0..100)
        .map(|number| put(&handle, &format!("k{number}"), 0))
        .collect();
    settle().await;
    tokio::spawn(driver.run(CancellationToken::new()));
    for put in puts {
        assert_eq!(put.await.unwrap(), Ok(()));
    }
    assert_eq!(*commits.lock().unwrap(), [100]);
}

#[tokio::test(start_paused = true)]
async fn a_write_is_neither_answered_nor_visible_before_it_is_on_disk() {
    let on_disk = Arc::new(Notify::new());
    let backend = scripted({
        let on_disk = Arc::clone(&on_disk);
        move |_| {
            let on_disk = Arc::clone(&on_disk);
            async move {
                on_disk.notified().await;
                Ok(())
            }
        }
    });
    let (driver, handle) = Loop::new(machine(), backend);
    tokio::spawn(driver.run(CancellationToken::new()));
    let put = put(&handle, "k", 0);
    settle().await;
    assert_eq!((put.is_finished(), count(&handle, "k")), (false, 0));
    on_disk.notify_one();
    assert_eq!(put.await.unwrap(), Ok(()));
    assert_eq!(count(&handle, "k"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_failed_disk_write_is_invisible_and_stops_the_store() {
    let backend = scripted(|_| async { Err(Error::Failed("no space left".to_owned())) });
    let (driver, handle) = Loop::new(machine(), backend);
    let stop = CancellationToken::new();
    let (_, outbox) = {
        let mut machine = driver.shared.write();
        machine.open_watch_stream(Duration::ZERO)
    };
    let running = tokio::spawn(driver.run(stop.clone()));
    assert_eq!(put(&handle, "k", 0).await.unwrap(), Err(ApiError::Stopped));
    assert!(running.await.unwrap().is_err());
    assert!(stop.is_cancelled());
    assert_eq!(count(&handle, "k"), 0);
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    assert!(
        outbox.poll_next(&mut context).is_ready(),
        "watches have ended"
    );
    assert_eq!(put(&handle, "k", 0).await.unwrap(), Err(ApiError::Stopped));
}

#[tokio::test(start_paused = true)]
async fn a_lease_ends_on_time_without_anyone_asking() {
    let (driver, handle) = Loop::new(machine(), Backend::Memory);
    tokio::spawn(driver.run(CancellationToken::new()));
    let request = PbLeaseGrantRequest { id: 7, ttl: 10 };
    let granted = handle
        .call(move |machine, now| machine.lease_grant(now, &request, 0))
        .await;
    assert!(granted.unwrap().is_ok());
    assert_eq!(put(&handle, "k", 7).await.unwrap(), Ok(()));
    tokio::time::sleep(Duration::from_millis(9_990)).await;
    assert_eq!(count(&handle, "k"), 1);
    tokio::time::sleep(Duration::from_millis(20)).await;
    assert_eq!(count(&handle, "k"), 0);
}

#[tokio::test(start_paused = true)]
async fn a_lease_kept_alive_in_time_outlives_a_slow_disk() {
    let on_disk = Arc::new(Notify::new());
    let backend = scripted({
        let on_disk = Arc::clone(&on_disk);
        move |_| {
            let on_disk = Arc::clone(&on_disk);
            async move {
                on_disk.notified().await;
                Ok(())
            }
        }
    });
    let (driver, handle) = Loop::new(machine(), backend);
    tokio::spawn(driver.run(CancellationToken::new()));
    let request = PbLeaseGrantRequest { id: 7, ttl: 10 };
    let grant = handle.call(move |machine, now| machine.lease_grant(now, &request, 0));
    let (granted, ()) = tokio::join!(grant, async { on_disk.notify_one() });
    assert!(granted.unwrap().is_ok());

    // The disk takes 15 seconds; the keep-alive came after 8.
    let slow = put(&handle, "k", 7);
    tokio::time::sleep(Duration::from_secs(8)).await;
    let keep_alive = tokio::spawn({
        let handle = handle.clone();
        async move {
            let renewed = handle.call(|machine, now| machine.lease_keep_alive(now, 7));
            renewed.await.unwrap().ttl
        }
    });
    tokio::time::sleep(Duration::from_secs(7)).await;
    on_disk.notify_one();
    assert_eq!(slow.await.unwrap(), Ok(()));
    assert_eq!(keep_alive.await.unwrap(), 10);
    assert_eq!(count(&handle, "k"), 1);
    // It was kept alive as of 8, and ends as of 18.
    tokio::time::sleep(Duration::from_millis(3_010)).await;
    on_disk.notify_one();
    settle().await;
    assert_eq!(count(&handle, "k"), 0);
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_gives_up_does_not_disturb_the_others() {
    let (driver, handle) = Loop::new(machine(), Backend::Memory);
    let given_up = put(&handle, "a", 0);
    let patient = put(&handle, "b", 0);
    settle().await;
    given_up.abort();
    settle().await;
    tokio::spawn(driver.run(CancellationToken::new()));
    assert_eq!(patient.await.unwrap(), Ok(()));
    assert_eq!(count(&handle, "b"), 1);
}

#[tokio::test]
async fn commits_without_durability_are_synced_soon_after() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store");
    let (disk, _) = Disk::open(&path, Durability::None).unwrap();
    let disk = Arc::new(disk);
    let (driver, handle) = Loop::new(machine(), Backend::Disk(Arc::clone(&disk)));
    tokio::spawn(driver.run(CancellationToken::new()));
    assert_eq!(put(&handle, "k", 0).await.unwrap(), Ok(()));
    assert!(disk.needs_flush());
    tokio::select! {
        () = tokio::time::sleep(Duration::from_secs(20)) => panic!("never synced"),
        () = async {
            while disk.needs_flush() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        } => {}
    }
}
