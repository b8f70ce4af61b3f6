//! The replica while the store is unreachable, partitioned, compacted or restored.

use std::time::Duration;

use store::{ClientOptions, Delta, Replica, ReplicaMetrics, ReplicaOptions};
use test_kit::etcd::Etcd;
use test_kit::proxy::{Mode, Proxy};
use test_kit::wait_for;
use test_kit::writes;

use crate::support::{
    Backend, WAIT_LIMIT, complete, connect, create, eval, impatient, key, never, next, on_both,
    update,
};

on_both!(
    a_broken_watch_is_resumed_where_it_ended,
    scenario_096_a_compacted_watch_lists_again,
    fragments_are_shown_in_whole_revisions,
    a_silent_store_is_watched_on_a_new_connection,
    the_last_state_is_served_while_the_store_is_unreachable,
    a_replica_waits_for_a_late_store,
);

/// A replica behind a proxy.
struct Behind {
    proxy: Proxy,
    replica: Replica,
    metrics: ReplicaMetrics,
}

async fn behind(backend: &Backend, watch_timeout: Duration) -> Behind {
    let proxy = backend.proxy().await;
    let metrics = ReplicaMetrics::default();
    let options = ReplicaOptions {
        progress_interval: Duration::from_millis(100),
        watch_timeout,
        metrics: metrics.clone(),
        ..Default::default()
    };
    let replica = Replica::start(impatient(&proxy).await, options, never());
    replica.ready(WAIT_LIMIT).await.unwrap();
    Behind {
        proxy,
        replica,
        metrics,
    }
}

async fn a_broken_watch_is_resumed_where_it_ended(backend: Backend) {
    let behind = behind(&backend, WAIT_LIMIT).await;
    let writer = backend.client().await.unfenced_writer();
    let (_, mut deltas) = behind.replica.subscribe();
    let mut written = Vec::new();
    for round in 0..5 {
        behind.proxy.set(Mode::Cut);
        for number in 0..10 {
            written.push(create(&writer, &eval(round * 10 + number)).await);
        }
        behind.proxy.set(Mode::Open);
        let last = *written.last().unwrap();
        behind.replica.wait_for(last, WAIT_LIMIT).await.unwrap();
    }
    let mut observed = Vec::new();
    while observed.len() < written.len() {
        let Some(Delta::Changes { revision, .. }) = next(&mut deltas).await else {
            panic!()
        };
        observed.push(revision);
    }
    assert_eq!(observed, written, "nothing lost, nothing twice");
    assert_eq!(behind.metrics.relists.get(), 1, "only the first list");
    assert!(behind.metrics.watch_failures.get() >= 1);
}

async fn scenario_096_a_compacted_watch_lists_again(backend: Backend) {
    let behind = behind(&backend, WAIT_LIMIT).await;
    let writer = backend.client().await.unfenced_writer();
    let first = create(&writer, &eval(1)).await;
    behind.replica.wait_for(first, WAIT_LIMIT).await.unwrap();
    let (_, mut deltas) = behind.replica.subscribe();

    behind.proxy.set(Mode::Cut);
    let changed = update(&writer, first, &complete(eval(1))).await;
    let mut txn = writer.txn();
    txn.add(&writes::delete(&key(&eval(1)), changed)).unwrap();
    writer.commit(&txn).await.unwrap();
    let last = create(&writer, &eval(2)).await;
    backend.compact().await;
    assert!(
        behind.replica.snapshot().eval(eval(1).id).is_some(),
        "served meanwhile"
    );
    behind.proxy.set(Mode::Open);

    let snapshot = behind.replica.wait_for(last, WAIT_LIMIT).await.unwrap();
    assert!(snapshot.eval(eval(1).id).is_none() && snapshot.eval(eval(2).id).is_some());
    let Some(Delta::Resnapshot(observed)) = next(&mut deltas).await else {
        panic!()
    };
    assert!(observed.index() >= last);
    assert_eq!(behind.metrics.relists.get(), 2);
}

async fn fragments_are_shown_in_whole_revisions(backend: Backend) {
    let behind = behind(&backend, WAIT_LIMIT).await;
    let writer = backend.client().await.unfenced_writer();
    let (_, mut deltas) = behind.replica.subscribe();
    behind.proxy.set(Mode::Cut);
    // Together larger than one message of the watch (slightly above the server's request limit), in
    // transactions of different sizes, so that a message ends within one.
    let mut written = Vec::new();
    for round in 0..10 {
        let mut txn = writer.txn();
        for number in 0..(12 + round % 5) {
            let mut eval = eval(round * 100 + number);
            eval.status_description = "x".repeat(60_000);
            txn.add(&writes::create(&key(&eval), &eval)).unwrap();
        }
        let count = txn.write_count();
        written.push((
            writer.commit(&txn).await.unwrap().revision().unwrap(),
            count,
        ));
    }
    behind.proxy.set(Mode::Open);
    let mut observed = Vec::new();
    while observed.len() < written.len() {
        match next(&mut deltas).await {
            Some(Delta::Changes { revision, changes }) => observed.push((revision, changes.len())),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(observed, written);
}

async fn a_silent_store_is_watched_on_a_new_connection(backend: Backend) {
    let behind = behind(&backend, Duration::from_millis(500)).await;
    let writer = backend.client().await.unfenced_writer();
    behind.proxy.set(Mode::Hold);
    let revision = create(&writer, &eval(1)).await;
    let failures = || behind.metrics.watch_failures.get();
    wait_for("the watch to be given up", WAIT_LIMIT, async || {
        (failures() > 0).then_some(())
    })
    .await;
    // The old connection stays dead; a new one works.
    behind.proxy.set(Mode::Cut);
    behind.proxy.set(Mode::Open);
    behind.replica.wait_for(revision, WAIT_LIMIT).await.unwrap();
}

async fn the_last_state_is_served_while_the_store_is_unreachable(backend: Backend) {
    let behind = behind(&backend, Duration::from_millis(300)).await;
    let revision = create(&backend.client().await.unfenced_writer(), &eval(1)).await;
    behind.replica.wait_for(revision, WAIT_LIMIT).await.unwrap();
    behind.proxy.set(Mode::Cut);
    let old = Duration::from_millis(600);
    wait_for("the age of what is known to show", WAIT_LIMIT, async || {
        (behind.replica.last_contact()? > old).then_some(())
    })
    .await;
    assert!(behind.replica.snapshot().eval(eval(1).id).is_some());
    let read = behind.replica.linearizable(Duration::from_secs(2)).await;
    read.expect_err("a linearizable read does not answer from memory alone");
    behind.proxy.set(Mode::Open);
    wait_for("contact", WAIT_LIMIT, async || {
        (behind.replica.last_contact()? < old).then_some(())
    })
    .await;
}

async fn a_replica_waits_for_a_late_store(backend: Backend) {
    let proxy = backend.proxy().await;
    proxy.set(Mode::Cut);
    let replica = Replica::start(impatient(&proxy).await, ReplicaOptions::default(), never());
    let early = replica.ready(Duration::from_millis(300)).await;
    early.expect_err("there is nothing to be ready with");
    assert_eq!((replica.applied(), replica.snapshot().index()), (0, 0));
    proxy.set(Mode::Open);
    replica.ready(WAIT_LIMIT).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn scenario_095_a_store_restored_from_a_backup_is_listed_anew() {
    if !test_kit::etcd::available() {
        return;
    }
    // Two stores behind one address: the second is younger, as after a restore.
    let (old, young) = (Etcd::start().await.unwrap(), Etcd::start().await.unwrap());
    let options = ClientOptions::default;
    let old_writer = connect(&old.endpoint(), options()).await.unfenced_writer();
    let mut last = 0;
    for number in 0..20 {
        last = create(&old_writer, &eval(number)).await;
    }
    let young_writer = connect(&young.endpoint(), options())
        .await
        .unfenced_writer();
    create(&young_writer, &eval(99)).await;

    let proxy = Switch::start(old.address()).await;
    let replica = Replica::start(proxy.client().await, ReplicaOptions::default(), never());
    replica.wait_for(last, WAIT_LIMIT).await.unwrap();
    let (_, mut deltas) = replica.subscribe();
    proxy.turn_to(young.address());
    let Some(Delta::Resnapshot(_)) = next(&mut deltas).await else {
        panic!()
    };
    let snapshot = replica.snapshot();
    assert_eq!(snapshot.evals().count(), 1);
    assert!(snapshot.index() < last && snapshot.eval(eval(99).id).is_some());
    let newest = create(&young_writer, &eval(100)).await;
    let Some(Delta::Changes { revision, .. }) = next(&mut deltas).await else {
        panic!()
    };
    assert_eq!(revision, newest, "and followed from there");
}

/// An address with an exchangeable server.
struct Switch {
    address: std::net::SocketAddr,
    target: tokio::sync::watch::Sender<std::net::SocketAddr>,
}

impl Switch {
    async fn start(first: std::net::SocketAddr) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (target, targets) = tokio::sync::watch::channel(first);
        tokio::spawn(async move {
            while let Ok((mut client, _)) = listener.accept().await {
                let mut targets = targets.clone();
                tokio::spawn(async move {
                    let target = *targets.borrow_and_update();
                    let Ok(mut server) = tokio::net::TcpStream::connect(target).await else {
                        return;
                    };
                    tokio::select! {
                        _ = tokio::io::copy_bidirectional(&mut client, &mut server) => {}
                        _ = targets.changed() => {}
                    }
                });
            }
        });
        Self { address, target }
    }

    async fn client(&self) -> store::Client {
        connect(
            &format!("http://{}", self.address),
            ClientOptions::default(),
        )
        .await
    }

    fn turn_to(&self, target: std::net::SocketAddr) {
        self.target.send_replace(target);
    }
}
