//! The replica: it shows states that the store was in, and soon the newest.

use std::time::Duration;

use model::EvalId;
use state::{Change, Key, Snapshot};
use store::{ClientOptions, Delta, Replica, ReplicaOptions, WaitError, Writer};
use test_kit::builders::{allocation, node, service};
use test_kit::writes;

use crate::support::{
    Backend, WAIT_LIMIT, complete, connect, create, done, eval, key, never, next, on_both, replica,
    update,
};

on_both!(
    listed_and_watched_objects_are_shown,
    a_list_of_many_pages_is_one_state,
    an_own_write_is_read_at_its_revision,
    a_wait_for_a_missing_revision_times_out,
    a_linearizable_read_sees_every_write_before_it,
    a_replica_catches_up_with_a_quiet_store,
    whole_revisions_are_shown_under_load,
    a_subscriber_receives_every_change_in_order,
    a_slow_subscriber_starts_again_from_a_state,
    a_value_that_cannot_be_decoded_is_skipped,
    a_job_is_shown_with_its_version_and_noted_once,
    a_transaction_larger_than_a_message_is_one_revision,
    a_wait_for_a_change_ends_with_it,
    a_drained_replica_says_so,
);

fn ids(snapshot: &Snapshot) -> Vec<EvalId> {
    let mut ids: Vec<_> = snapshot.evals().map(|eval| eval.value.id).collect();
    ids.sort();
    ids
}

async fn listed_and_watched_objects_are_shown(backend: Backend) {
    let client = backend.client().await;
    let writer = client.unfenced_writer();
    let first = create(&writer, &eval(1)).await;
    let doomed = create(&writer, &eval(2)).await;
    let replica = replica(&client).await;
    let at_start = replica.snapshot();
    assert_eq!(ids(&at_start), [eval(1).id, eval(2).id]);
    assert_eq!(at_start.eval(eval(1).id).unwrap().create_index, first);

    let changed = update(&writer, first, &complete(eval(1))).await;
    let mut txn = writer.txn();
    txn.add(&writes::delete(&key(&eval(2)), doomed)).unwrap();
    let deleted = done(writer.commit(&txn).await.unwrap());
    let now = replica.wait_for(deleted, WAIT_LIMIT).await.unwrap();
    assert_eq!(ids(&now), [eval(1).id]);
    let shown = now.eval(eval(1).id).unwrap();
    assert_eq!((shown.create_index, shown.modify_index), (first, changed));
    assert_eq!(ids(&at_start).len(), 2, "a snapshot never changes");
    assert!(replica.last_contact().unwrap() < WAIT_LIMIT);
}

async fn a_list_of_many_pages_is_one_state(backend: Backend) {
    let client = backend.client().await;
    let writer = client.unfenced_writer();
    for number in 0..25 {
        create(&writer, &eval(number)).await;
    }
    let options = ReplicaOptions {
        page_size: 4,
        ..Default::default()
    };
    let replica = Replica::start(client.clone(), options, never());
    let snapshot = replica.ready(WAIT_LIMIT).await.unwrap();
    assert_eq!(ids(&snapshot).len(), 25);
    assert_eq!(snapshot.index(), client.current_revision().await.unwrap());
}

async fn an_own_write_is_read_at_its_revision(backend: Backend) {
    let client = backend.client().await;
    let (writer, replica) = (client.unfenced_writer(), replica(&client).await);
    for number in 0..100 {
        let revision = create(&writer, &eval(number)).await;
        let snapshot = replica.wait_for(revision, WAIT_LIMIT).await.unwrap();
        assert_eq!(
            snapshot.eval(eval(number).id).unwrap().modify_index,
            revision
        );
    }
}

async fn a_wait_for_a_missing_revision_times_out(backend: Backend) {
    let client = backend.client().await;
    let replica = replica(&client).await;
    let late = replica.wait_for(1_000_000, Duration::from_millis(50)).await;
    assert!(
        matches!(
            late,
            Err(WaitError::Timeout {
                wanted: 1_000_000,
                ..
            })
        ),
        "{late:?}"
    );
    let revision = create(&client.unfenced_writer(), &eval(1)).await;
    replica.wait_for(revision, WAIT_LIMIT).await.unwrap();
}

async fn a_linearizable_read_sees_every_write_before_it(backend: Backend) {
    let client = backend.client().await;
    let (writer, replica) = (client.unfenced_writer(), replica(&client).await);
    for number in 0..100 {
        let revision = create(&writer, &eval(number)).await;
        let snapshot = replica.linearizable(WAIT_LIMIT).await.unwrap();
        assert!(snapshot.index() >= revision && snapshot.eval(eval(number).id).is_some());
    }
}

async fn a_replica_catches_up_with_a_quiet_store(backend: Backend) {
    let replica = replica(&backend.client().await).await;
    // The revision moves without changes below the prefix, so there is no event.
    let options = ClientOptions {
        prefix: "/other/".to_owned(),
        ..Default::default()
    };
    let elsewhere = connect(&backend.endpoint(), options)
        .await
        .unfenced_writer();
    for number in 0..20 {
        let revision = create(&elsewhere, &eval(number)).await;
        let started = tokio::time::Instant::now();
        let snapshot = replica.linearizable(WAIT_LIMIT).await.unwrap();
        assert!(snapshot.index() >= revision);
        assert_eq!(snapshot.evals().count(), 0);
        // Requested: the interval of unrequested progress is a second.
        assert!(started.elapsed() < Duration::from_millis(900) || number == 0);
    }
}

/// Keys per transaction of the load.
const TOGETHER: u128 = 40;

/// Changes all keys together in each round, with the number of the round.
async fn change_together(writer: &Writer, rounds: u64) -> u64 {
    let mut last = 0;
    for round in 1..=rounds {
        let mut txn = writer.txn();
        for number in 0..TOGETHER {
            let mut eval = eval(number);
            eval.snapshot_index = round;
            if last == 0 {
                txn.add(&writes::create(&key(&eval), &eval)).unwrap();
            } else {
                txn.add(&writes::update(&key(&eval), last, &eval)).unwrap();
            }
        }
        last = done(writer.commit(&txn).await.unwrap());
    }
    last
}

async fn whole_revisions_are_shown_under_load(backend: Backend) {
    let client = backend.client().await;
    let replica = replica(&client).await;
    let writer = client.unfenced_writer();
    let load = tokio::spawn(async move { change_together(&writer, 300).await });
    let mut seen = 0;
    let mut states = 0;
    loop {
        let snapshot = replica.changed(seen).await.unwrap();
        assert!(snapshot.index() > seen);
        seen = snapshot.index();
        states += 1;
        let rounds: Vec<_> = snapshot
            .evals()
            .map(|eval| eval.value.snapshot_index)
            .collect();
        assert!(rounds.len() == usize::try_from(TOGETHER).unwrap() || rounds.is_empty());
        assert!(
            rounds.windows(2).all(|pair| pair[0] == pair[1]),
            "half a revision: {rounds:?}"
        );
        if rounds.first() == Some(&300) {
            break;
        }
    }
    assert_eq!(load.await.unwrap(), seen);
    println!("{states} states of 300 revisions");
}

async fn a_subscriber_receives_every_change_in_order(backend: Backend) {
    let client = backend.client().await;
    let writer = client.unfenced_writer();
    let before = create(&writer, &eval(1_000)).await;
    let replica = replica(&client).await;
    let (snapshot, mut changes) = replica.subscribe();
    assert!(snapshot.index() >= before);
    let load = tokio::spawn(async move { change_together(&writer, 50).await });
    let mut observed = snapshot.index();
    for round in 1..=50 {
        let Some(Delta::Changes { revision, changes }) = next(&mut changes).await else {
            panic!()
        };
        assert!(revision > observed);
        observed = revision;
        assert_eq!(changes.len(), usize::try_from(TOGETHER).unwrap());
        for change in &*changes {
            let Change::Put {
                key: Key::Eval(_),
                entity,
                modify_index,
                ..
            } = change
            else {
                panic!("{change:?}")
            };
            let state::Entity::Eval(eval) = entity else {
                panic!("{entity:?}")
            };
            assert_eq!((eval.snapshot_index, *modify_index), (round, revision));
        }
    }
    assert_eq!(load.await.unwrap(), observed);
}

async fn a_slow_subscriber_starts_again_from_a_state(backend: Backend) {
    let client = backend.client().await;
    let options = ReplicaOptions {
        delta_capacity: 4,
        ..Default::default()
    };
    let replica = Replica::start(client.clone(), options, never());
    replica.ready(WAIT_LIMIT).await.unwrap();
    let (_, mut changes) = replica.subscribe();
    let writer = client.unfenced_writer();
    let mut last = 0;
    for number in 0..50 {
        last = create(&writer, &eval(number)).await;
        // One batch each, so that there are more of them than are kept.
        replica.wait_for(last, WAIT_LIMIT).await.unwrap();
    }
    let Some(Delta::Resnapshot(snapshot)) = next(&mut changes).await else {
        panic!()
    };
    assert_eq!(snapshot.index(), last);
    let newest = create(&writer, &eval(99)).await;
    let Some(Delta::Changes { revision, .. }) = next(&mut changes).await else {
        panic!()
    };
    assert_eq!(revision, newest, "changes in the state are not repeated");
}

async fn a_value_that_cannot_be_decoded_is_skipped(backend: Backend) {
    let client = backend.client().await;
    let writer = client.unfenced_writer();
    let mut raw = backend.raw().await;
    let text = |number| client.keyspace().encode(&key(&eval(number)));
    raw.put(text(1), "{broken", None).await.unwrap();
    raw.put("/kafila/v1/alloc/not-an-id", "{}", None)
        .await
        .unwrap();
    raw.put("/kafila/v1/of-a-later-version/x", "?", None)
        .await
        .unwrap();
    let good = create(&writer, &eval(2)).await;
    let listed = replica(&client).await;
    assert_eq!(ids(&listed.snapshot()), [eval(2).id]);

    raw.put(text(2), r#"{"status":"no such status"}"#, None)
        .await
        .unwrap();
    raw.put("/kafila/v1/job/default", "{}", None).await.unwrap();
    let last = create(&writer, &eval(3)).await;
    let watched = listed.wait_for(last, WAIT_LIMIT).await.unwrap();
    assert_eq!(
        ids(&watched),
        [eval(3).id],
        "what cannot be read any more is not shown as it was"
    );
    assert!(good < last);
    let listed_later = replica(&client).await;
    assert_eq!(
        ids(&listed_later.snapshot()),
        ids(&watched),
        "listing and watching agree"
    );
    assert_eq!(client.get(&key(&eval(2))).await.unwrap(), None);
}

async fn a_job_is_shown_with_its_version_and_noted_once(backend: Backend) {
    let client = backend.client().await;
    let writer = client.unfenced_writer();
    let replica = replica(&client).await;
    let (_, mut deltas) = replica.subscribe();
    let (mut txn, web, api) = (writer.txn(), service("web", 1), service("api", 2));
    for job in [&web, &api] {
        let version = Key::JobVersion(job.key(), job.version);
        txn.add(&writes::create(&version, job)).unwrap();
        txn.add(&writes::create(&Key::Job(job.key()), job)).unwrap();
    }
    let created = done(writer.commit(&txn).await.unwrap());
    let snapshot = replica.wait_for(created, WAIT_LIMIT).await.unwrap();
    for job in [&web, &api] {
        let stored = snapshot.job(&job.key()).unwrap();
        assert_eq!((&stored.value, stored.create_index), (job, created));
        let version = snapshot.job_version(&job.key(), job.version).unwrap();
        assert_eq!((&version.value, version.create_index), (job, created));
    }
    let Some(Delta::Changes { changes, .. }) = next(&mut deltas).await else {
        panic!("no changes");
    };
    let (Change::Put { key: first, .. } | Change::Delete { key: first }) = &changes[0];
    assert_eq!((first, changes.len()), (&Key::Job(web.key()), 2));
}

async fn a_transaction_larger_than_a_message_is_one_revision(backend: Backend) {
    let client = backend.client().await;
    let replica = replica(&client).await;
    let (_, mut deltas) = replica.subscribe();
    let mut txn = client.unfenced_writer().txn();
    for number in 0..18 {
        let mut eval = eval(number);
        eval.status_description = "x".repeat(50_000);
        txn.add(&writes::create(&key(&eval), &eval)).unwrap();
    }
    let job = service("web", 1);
    let alloc = allocation(1, &job, node(1).id);
    txn.add(&writes::create(&Key::Alloc(alloc.id), &alloc))
        .unwrap();
    let committed = done(client.unfenced_writer().commit(&txn).await.unwrap());
    let Some(Delta::Changes { revision, changes }) = next(&mut deltas).await else {
        panic!()
    };
    assert_eq!((revision, changes.len()), (committed, 19));
}

async fn a_wait_for_a_change_ends_with_it(backend: Backend) {
    let client = backend.client().await;
    let replica = replica(&client).await;
    let seen = replica.snapshot().index();
    let waiting = tokio::spawn({
        let replica = replica.clone();
        async move { replica.changed(seen).await.unwrap() }
    });
    let revision = create(&client.unfenced_writer(), &eval(1)).await;
    let woken = tokio::time::timeout(WAIT_LIMIT, waiting)
        .await
        .unwrap()
        .unwrap();
    assert!(woken.index() >= revision);
}

async fn a_drained_replica_says_so(backend: Backend) {
    let client = backend.client().await;
    let drain = never();
    let replica = Replica::start(client.clone(), ReplicaOptions::default(), drain.clone());
    replica.ready(WAIT_LIMIT).await.unwrap();
    let (_, mut changes) = replica.subscribe();
    drain.cancel();
    assert!(next(&mut changes).await.is_none());
    let waited = replica.wait_for(1_000_000, WAIT_LIMIT).await;
    assert!(matches!(waited, Err(WaitError::Stopped)), "{waited:?}");
    assert!(matches!(
        replica.changed(1_000_000).await,
        Err(WaitError::Stopped)
    ));
}
