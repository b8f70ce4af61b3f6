//! The scheduler configuration pauses the broker, and lets it go on.

use model::EvalStatus;
use test_kit::builders::{evaluation, service};
use test_kit::wait_for;

use crate::suite::{Replica, Suite, TIMEOUT, id_of};

async fn wait_for_ready(suite: &Suite, leader: &Replica, count: u64) {
    wait_for("what is ready", TIMEOUT, async || {
        let stats = suite.stats(&leader.address).await;
        (stats.ready == count).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_paused_broker_hands_nothing_out_over_a_change_of_leaders_and_loses_nothing() {
    let suite = Suite::start().await;
    let first = suite.leader().await;
    let standby = suite.replica().await;
    let mut worker = suite.worker(&first.address, 10).await;
    let evals: Vec<_> = (1..=4)
        .map(|number| evaluation(number, &service(&format!("web-{number}"), 1)))
        .collect();
    suite.create_eval(&evals[0]).await;
    let in_hand = worker.next().await;

    suite.pause(true).await;
    for eval in &evals[1..3] {
        suite.create_eval(eval).await;
    }
    wait_for_ready(&suite, &first, 2).await;
    assert!(worker.has_nothing(&suite, &first.address).await);
    let paused = "kafila_eval_broker_paused 1";
    let shown = first.metrics().await;
    assert!(shown.lines().any(|line| line == paused), "{shown}");
    // A worker finishes the evaluations that it holds.
    worker.ack(&in_hand).await.unwrap();
    suite
        .finish(evals[0].id, |eval| eval.status = EvalStatus::Complete)
        .await;

    first.drain.cancel();
    suite.wait_for_leader(&standby.address).await;
    let mut worker = suite.worker(&standby.address, 10).await;
    suite.create_eval(&evals[3]).await;
    wait_for_ready(&suite, &standby, 3).await;
    assert!(worker.has_nothing(&suite, &standby.address).await);

    suite.pause(false).await;
    let mut delivered = Vec::new();
    for _ in 0..3 {
        delivered.push(id_of(&worker.next().await));
    }
    delivered.sort_unstable();
    let expected: Vec<_> = evals[1..].iter().map(|eval| eval.id).collect();
    assert_eq!(delivered, expected);
}
