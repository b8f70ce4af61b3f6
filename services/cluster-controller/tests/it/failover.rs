//! Another leader, no gateway, and a leader that does not know yet that it is none.

use cluster_controller::SERVICE;
use model::NodeStatus::{Down, Ready};
use proto::v1::ErrorDetail;
use state::Key;
use test_kit::builders::service;
use test_kit::wait_for;
use test_kit::writes;
use tokio::time::Instant;
use tonic::Code;

use crate::suite::{SILENCE_LIMIT, Suite, TIMEOUT, TTL, id, made_at};

#[tokio::test]
async fn a_standby_names_the_leader() {
    let suite = Suite::start().await;
    let (controller, _gateway) = suite.led().await;
    let standby = suite.controller().await;
    let hint = wait_for("a standby that knows the leader", TIMEOUT, async || {
        let status = suite.try_gateway(&standby.address).await.err()?;
        assert_eq!(status.code(), Code::FailedPrecondition);
        let hint = ErrorDetail::from_status(&status)?.leader_address;
        (!hint.is_empty()).then_some(hint)
    })
    .await;
    assert_eq!(hint, controller.address);
}

#[tokio::test]
async fn a_new_leader_gives_every_node_grace_and_then_takes_the_silent_for_down() {
    let suite = Suite::start().await;
    let (first, mut gateway) = suite.led().await;
    for number in 1..=3 {
        suite.register(number, Ready).await;
    }
    gateway.hear(&[1, 2, 3]).await;
    let second = suite.controller().await;
    first.drain.cancel();
    let mut gateway = suite.gateway(&second.address).await;
    let taken_over = Instant::now();
    suite.beat_until(&mut gateway, &[1, 2], 3, Down).await;
    // The grace begins with the first gateway, a moment before this one knows.
    let waited = taken_over.elapsed();
    assert!(waited >= (SILENCE_LIMIT + TTL).mul_f64(0.9), "{waited:?}");
    assert_eq!(suite.now().await.node(id(1)).unwrap().value.status, Ready);
}

#[tokio::test]
async fn without_a_gateway_no_node_goes_down() {
    let suite = Suite::start().await;
    let (controller, mut gateway) = suite.led().await;
    suite.register(1, Ready).await;
    suite.beat_until(&mut gateway, &[1], 1, Ready).await;
    drop(gateway);
    // The one test of a period in which nothing may happen: half as long again as a node may be
    // silent.
    tokio::time::sleep(SILENCE_LIMIT.mul_f64(1.5)).await;
    assert_eq!(suite.now().await.node(id(1)).unwrap().value.status, Ready);
    // A gateway without heartbeats sends empty messages.
    let mut gateway = suite.gateway(&controller.address).await;
    suite.beat_until(&mut gateway, &[], 1, Down).await;
}

#[tokio::test]
async fn evaluations_missing_from_a_former_leader_are_created_by_the_next() {
    let suite = Suite::start().await;
    suite.register(1, Down).await;
    suite.place(&service("web", 1), 1).await;
    let _controller = suite.controller().await;
    let made = suite
        .wait("an evaluation", |snapshot| snapshot.evals().next().cloned())
        .await;
    assert_eq!(
        (&*made.value.job.job_id, made.value.node_id),
        ("web", Some(id(1)))
    );
}

#[tokio::test]
async fn the_fence_refuses_the_writes_of_a_deposed_leader() {
    let suite = Suite::start().await;
    let (deposed, mut old_gateway) = suite.led().await;
    for number in 1..=3 {
        suite.register(number, Ready).await;
    }
    suite.place(&service("web", 1), 1).await;
    old_gateway.hear(&[1, 2, 3]).await;
    let other = suite.controller().await;

    // Its key vanishes under it; its lease lives on, so it does not know.
    let term = suite.leader_term().await;
    suite
        .commit(|txn| {
            txn.add(&writes::delete(&Key::Election(SERVICE.to_owned()), term))
                .unwrap();
        })
        .await;
    let mut gateway = suite.gateway(&other.address).await;
    gateway.hear(&[1, 2, 3]).await;
    // Node 1 is silent for the deposed leader alone, which wants to write it down.
    wait_for("the deposed leader to step down", TIMEOUT, async || {
        gateway.hear(&[1, 2, 3]).await;
        old_gateway.try_hear(&[2, 3]).await.is_err().then_some(())
    })
    .await;
    let snapshot = suite.now().await;
    assert_eq!(snapshot.node(id(1)).unwrap().value.status, Ready);
    assert_eq!(
        snapshot.evals().count(),
        0,
        "{:?}",
        made_at(&snapshot, snapshot.index())
    );
    drop(deposed);
}
