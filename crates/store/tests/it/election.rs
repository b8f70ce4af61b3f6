//! Elections: at most one leader can write, and a lost leader is replaced soon.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use model::LeaderInfo;
use state::Key;
use store::{Client, Commit, ElectionOptions, Error, Leadership, Replica, run_elected};
use test_kit::proxy::Mode;
use test_kit::wait_for;
use test_kit::writes;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use crate::support::{
    Backend, WAIT_LIMIT, create, done, eval, impatient, key, never, on_both, replica,
};

on_both!(
    one_of_two_leads_and_the_other_follows_at_once,
    a_leader_cut_off_stops_before_another_starts,
    a_deposed_leader_cannot_write,
    a_leaders_writer_refuses_transactions_without_its_fence,
    a_lease_revoked_from_outside_ends_the_term,
    the_replica_has_reached_the_election_before_the_term_begins,
    a_panic_ends_the_term,
    a_leader_without_a_loop_is_replaced,
    a_campaign_waits_for_an_unreachable_store,
    a_key_deleted_from_outside_ends_the_term,
    a_write_with_a_failed_fence_ends_the_term,
    a_leader_keeps_its_term,
);

const SERVICE: &str = "eval-broker";
/// The shortest that etcd grants with its default election timeout.
const TTL: Duration = Duration::from_secs(2);

/// A candidate that leads until stopped, and sends its terms.
struct Candidate {
    replica: Replica,
    drain: CancellationToken,
    terms: mpsc::UnboundedReceiver<Leadership>,
    running: JoinHandle<()>,
}

fn options(name: &str) -> ElectionOptions {
    let info = LeaderInfo {
        address: format!("http://{name}"),
        replica: name.to_owned(),
    };
    ElectionOptions {
        ttl: TTL,
        ..ElectionOptions::new(SERVICE, info)
    }
}

async fn candidate(client: Client, name: &str) -> Candidate {
    let replica = Replica::start(client.clone(), Default::default(), never());
    let drain = never();
    let (sender, terms) = mpsc::unbounded_channel();
    let lead = {
        let drain = drain.clone();
        move |leadership: Leadership| {
            let (sender, drain) = (sender.clone(), drain.clone());
            async move {
                sender.send(leadership).unwrap();
                drain.cancelled().await;
            }
        }
    };
    let running = tokio::spawn(run_elected(
        options(name),
        replica.clone(),
        client,
        drain.clone(),
        lead,
    ));
    Candidate {
        replica,
        drain,
        terms,
        running,
    }
}

impl Candidate {
    async fn term(&mut self) -> Leadership {
        timeout(WAIT_LIMIT, self.terms.recv())
            .await
            .expect("elected in time")
            .unwrap()
    }

    async fn leave(self) {
        self.drain.cancel();
        timeout(WAIT_LIMIT, self.running).await.unwrap().unwrap();
    }
}

async fn one_of_two_leads_and_the_other_follows_at_once(backend: Backend) {
    let client = backend.client().await;
    let mut first = candidate(client.clone(), "a").await;
    let leadership = first.term().await;
    assert!(leadership.is_current());
    let mut second = candidate(client.clone(), "b").await;
    let watcher = replica(&client).await;
    assert_eq!(watcher.leader(SERVICE).unwrap().replica, "a");
    assert!(second.terms.try_recv().is_err());

    let left = Instant::now();
    first.leave().await;
    assert!(leadership.lost().is_cancelled() && !leadership.is_current());
    let next = second.term().await;
    assert!(
        left.elapsed() < TTL / 2,
        "without waiting for a lease: {:?}",
        left.elapsed()
    );
    assert!(next.fence().create_revision > leadership.fence().create_revision);
    watcher
        .wait_for(next.fence().create_revision, WAIT_LIMIT)
        .await
        .unwrap();
    assert_eq!(watcher.leader(SERVICE).unwrap().replica, "b");
    second.leave().await;
    let gone = watcher.linearizable(WAIT_LIMIT).await.unwrap();
    assert!(gone.leader(SERVICE).is_none());
}

async fn a_leader_cut_off_stops_before_another_starts(backend: Backend) {
    let proxy = backend.proxy().await;
    let mut first = candidate(impatient(&proxy).await, "a").await;
    let leadership = first.term().await;
    let mut second = candidate(backend.client().await, "b").await;
    proxy.set(Mode::Hold);
    let next = tokio::select! {
        next = second.term() => next,
        () = async {
            leadership.lost().cancelled().await;
            assert!(!leadership.is_current());
            std::future::pending().await
        } => unreachable!(),
    };
    assert!(
        leadership.lost().is_cancelled(),
        "the first let go before the second was elected"
    );
    assert!(next.is_current());
    // Reconnected, the first is a candidate.
    proxy.set(Mode::Cut);
    proxy.set(Mode::Open);
    second.leave().await;
    let again = first.term().await;
    assert!(again.fence().create_revision > next.fence().create_revision);
}

async fn a_deposed_leader_cannot_write(backend: Backend) {
    let proxy = backend.proxy().await;
    let client = backend.client().await;
    let mut first = candidate(impatient(&proxy).await, "a").await;
    let old = first.term().await;
    let mut second = candidate(client.clone(), "b").await;
    let prepared = |leadership: &Leadership, number| {
        let mut txn = leadership.writer(&client).txn();
        txn.add(&writes::create(&key(&eval(number)), &eval(number)))
            .unwrap();
        txn
    };
    done(
        old.writer(&client)
            .commit(&prepared(&old, 1))
            .await
            .unwrap(),
    );
    let late = prepared(&old, 2);
    proxy.set(Mode::Hold);
    let new = second.term().await;

    let refused = old.writer(&client).commit(&late).await.unwrap_err();
    assert!(
        matches!(refused, Error::Deposed { .. }),
        "it knows by itself: {refused}"
    );
    // The store refuses the write even when the leader does not know.
    let anyway = client.unfenced_writer().commit(&late).await.unwrap();
    let Commit::Conflict(conflict) = anyway else {
        panic!("a deposed leader wrote")
    };
    assert!(conflict.is_fenced());
    done(
        new.writer(&client)
            .commit(&prepared(&new, 2))
            .await
            .unwrap(),
    );
}

async fn a_leaders_writer_refuses_transactions_without_its_fence(backend: Backend) {
    let client = backend.client().await;
    let mut leader = candidate(client.clone(), "a").await;
    let leadership = leader.term().await;
    let mut bare = client.unfenced_writer().txn();
    bare.add(&writes::create(&key(&eval(1)), &eval(1))).unwrap();
    let refused = leadership.writer(&client).commit(&bare).await.unwrap_err();
    assert!(matches!(refused, Error::Unfenced { .. }), "{refused}");
}

async fn a_lease_revoked_from_outside_ends_the_term(backend: Backend) {
    let client = backend.client().await;
    let mut leader = candidate(client.clone(), "a").await;
    let leadership = leader.term().await;
    let mut raw = backend.raw().await;
    let election = client.keyspace().encode(&Key::Election(SERVICE.to_owned()));
    let lease = raw.get(election, None).await.unwrap().kvs()[0].lease();
    raw.lease_revoke(lease).await.unwrap();
    timeout(TTL, leadership.lost().cancelled())
        .await
        .expect("noticed with the next renewal");
    let next = leader.term().await;
    assert!(next.fence().create_revision > leadership.fence().create_revision);
}

async fn the_replica_has_reached_the_election_before_the_term_begins(backend: Backend) {
    let client = backend.client().await;
    for number in 0..200 {
        create(&client.unfenced_writer(), &eval(number)).await;
    }
    let mut leader = candidate(client.clone(), "a").await;
    let leadership = leader.term().await;
    let snapshot = leader.replica.snapshot();
    assert!(snapshot.index() >= leadership.fence().create_revision);
    assert_eq!(snapshot.evals().count(), 200);
    let shown = snapshot.leader(SERVICE).unwrap();
    assert_eq!(shown.create_index, leadership.fence().create_revision);
}

async fn a_panic_ends_the_term(backend: Backend) {
    let client = backend.client().await;
    let calls = Arc::new(AtomicU32::new(0));
    let (own, drain) = (replica(&client).await, never());
    let lead = {
        let (calls, drain) = (Arc::clone(&calls), drain.clone());
        move |_| {
            let (call, drain) = (calls.fetch_add(1, Ordering::SeqCst), drain.clone());
            async move {
                assert!(call > 0, "the first term panics");
                drain.cancelled().await;
            }
        }
    };
    let running = tokio::spawn(run_elected(
        options("a"),
        own.clone(),
        client,
        drain.clone(),
        lead,
    ));
    let second = wait_for("a second term", WAIT_LIMIT, async || {
        (calls.load(Ordering::SeqCst) == 2)
            .then(|| own.leader(SERVICE))
            .flatten()
    });
    assert_eq!(second.await.replica, "a");
    drain.cancel();
    timeout(WAIT_LIMIT, running).await.unwrap().unwrap();
}

async fn a_leader_without_a_loop_is_replaced(backend: Backend) {
    let client = backend.client().await;
    let mut first = candidate(client.clone(), "a").await;
    let leadership = first.term().await;
    let mut second = candidate(client, "b").await;
    first.running.abort();
    timeout(TTL, leadership.lost().cancelled())
        .await
        .expect("its lease is no longer renewed");
    second.term().await;
}

async fn a_campaign_waits_for_an_unreachable_store(backend: Backend) {
    let proxy = backend.proxy().await;
    proxy.set(Mode::Cut);
    let mut leader = candidate(impatient(&proxy).await, "a").await;
    let early = timeout(Duration::from_millis(500), leader.terms.recv()).await;
    assert!(early.is_err(), "elected without a store");
    proxy.set(Mode::Open);
    leader.term().await;
}

async fn a_key_deleted_from_outside_ends_the_term(backend: Backend) {
    let client = backend.client().await;
    let mut leader = candidate(client.clone(), "a").await;
    let leadership = leader.term().await;
    let mut raw = backend.raw().await;
    let election = client.keyspace().encode(&Key::Election(SERVICE.to_owned()));
    raw.delete(election, None).await.unwrap();
    timeout(TTL, leadership.lost().cancelled())
        .await
        .expect("seen in the replica");
    leader.term().await;
}

async fn a_write_with_a_failed_fence_ends_the_term(backend: Backend) {
    let client = backend.client().await;
    let mut leader = candidate(client.clone(), "a").await;
    let leadership = leader.term().await;
    let mut raw = backend.raw().await;
    let election = client.keyspace().encode(&Key::Election(SERVICE.to_owned()));
    raw.delete(election, None).await.unwrap();
    let writer = leadership.writer(&client);
    let mut txn = writer.txn();
    txn.add(&writes::create(&key(&eval(1)), &eval(1))).unwrap();
    match writer.commit(&txn).await {
        Ok(Commit::Conflict(conflict)) => assert!(conflict.is_fenced()),
        Err(Error::Deposed { .. }) => {}
        other => panic!("{other:?}"),
    }
    assert!(leadership.lost().is_cancelled());
}

async fn a_leader_keeps_its_term(backend: Backend) {
    let client = backend.client().await;
    let mut leader = candidate(client.clone(), "a").await;
    let leadership = leader.term().await;
    let until = leadership.deadline() + TTL * 2;
    wait_for("two more lease times", WAIT_LIMIT, async || {
        assert!(leadership.is_current());
        (Instant::now() > until).then_some(())
    })
    .await;
    assert!(leadership.deadline() > Instant::now());
}
