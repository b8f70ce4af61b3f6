//! Heartbeats in, transitions and evaluations out.

use model::NodeStatus::{Down, Initializing, Ready};
use model::TriggeredBy;
use test_kit::builders::{batch, service};

use crate::suite::{Suite, id, made_at};

#[tokio::test]
async fn a_new_node_is_ready_with_its_first_heartbeat() {
    let suite = Suite::start().await;
    let (_controller, mut gateway) = suite.led().await;
    suite.register(1, Initializing).await;
    suite.beat_until(&mut gateway, &[1], 1, Ready).await;
    let node = suite.now().await.node(id(1)).unwrap().value.clone();
    assert!(!node.status_updated_at.is_never());
}

#[tokio::test]
async fn a_node_that_misses_its_heartbeats_goes_down_and_its_jobs_are_looked_at() {
    let suite = Suite::start().await;
    let (_controller, mut gateway) = suite.led().await;
    for number in 1..=3 {
        suite.register(number, Ready).await;
    }
    suite.place(&service("web", 1), 1).await;
    suite.place(&batch("sum", 1), 2).await;
    let down = suite.beat_until(&mut gateway, &[2, 3], 1, Down).await;
    let snapshot = suite.now().await;
    let evals = made_at(&snapshot, down);
    assert_eq!(evals.len(), 1, "in the same transaction: {evals:?}");
    assert_eq!(&*evals[0].job.job_id, "web");
    assert_eq!(
        (evals[0].triggered_by, evals[0].node_id),
        (TriggeredBy::NodeUpdate, Some(id(1)))
    );
    assert_eq!(snapshot.evals().count(), 1);
    for number in [2, 3] {
        assert_eq!(snapshot.node(id(number)).unwrap().value.status, Ready);
    }

    let ready = suite.beat_until(&mut gateway, &[1, 2, 3], 1, Ready).await;
    assert_eq!(
        made_at(&suite.now().await, ready).len(),
        1,
        "they are looked at again"
    );
}

#[tokio::test]
async fn heartbeats_write_nothing() {
    let suite = Suite::start().await;
    let (_controller, mut gateway) = suite.led().await;
    suite.register(1, Ready).await;
    suite.beat_until(&mut gateway, &[1], 1, Ready).await;
    let before = suite.now().await.node(id(1)).unwrap().modify_index;
    for _ in 0..200 {
        gateway.hear(&[1]).await;
    }
    let snapshot = suite.now().await;
    assert_eq!(snapshot.node(id(1)).unwrap().modify_index, before);
    assert_eq!(snapshot.evals().count(), 0);
}

#[tokio::test]
async fn ids_that_are_none_do_not_spoil_a_report() {
    let suite = Suite::start().await;
    let (_controller, mut gateway) = suite.led().await;
    suite.register(1, Initializing).await;
    gateway
        .hear_texts(&["nonsense".to_owned(), id(1).to_string()])
        .await;
    suite.wait_for_status(1, Ready).await;
}
