//! Another leader, and a leader that does not know yet that it is none.

use model::EvalStatus;
use state::Key;
use test_kit::builders::{evaluation, node, service};
use test_kit::wait_for;
use test_kit::writes;
use tonic::Code;

use crate::suite::{Suite, TIMEOUT, id_of, leader_hint};

#[tokio::test]
async fn a_standby_names_the_leader() {
    let suite = Suite::start().await;
    let leader = suite.leader().await;
    let standby = suite.replica().await;
    let hint = wait_for("a standby that knows the leader", TIMEOUT, async || {
        let status = suite.try_worker(&standby.address, 1, &[]).await.err()?;
        assert_eq!(status.code(), Code::FailedPrecondition, "{status:?}");
        Some(leader_hint(&status)).filter(|hint| !hint.is_empty())
    })
    .await;
    assert_eq!(hint, leader.address);
}

#[tokio::test]
async fn the_next_leader_delivers_everything_that_is_open() {
    let suite = Suite::start().await;
    let first = suite.leader().await;
    let standby = suite.replica().await;
    let mut worker = suite.worker(&first.address, 1).await;
    let evals: Vec<_> = (1..=3)
        .map(|number| evaluation(number, &service(&format!("web-{number}"), 1)))
        .collect();
    for eval in &evals {
        suite.create_eval(eval).await;
    }
    let in_hand = worker.next().await;
    let closed = evaluation(4, &service("web-4", 1));
    suite.create_eval(&closed).await;
    suite
        .finish(closed.id, |eval| eval.status = EvalStatus::Canceled)
        .await;

    first.drain.cancel();
    assert_eq!(
        worker.try_next().await,
        None,
        "the session ends with the term"
    );
    suite.wait_for_leader(&standby.address).await;
    let mut worker = suite.worker(&standby.address, 10).await;
    let mut delivered = Vec::new();
    for _ in 0..3 {
        let delivery = worker.next().await;
        assert_ne!(
            delivery.token.split('.').next(),
            in_hand.token.split('.').next()
        );
        delivered.push(id_of(&delivery));
    }
    delivered.sort_unstable();
    let mut expected: Vec<_> = evals.iter().map(|eval| eval.id).collect();
    expected.sort_unstable();
    assert_eq!(delivered, expected);
    assert!(worker.has_nothing(&suite, &standby.address).await);
    // Deliveries of the old leader are not outstanding here.
    assert_eq!(
        worker.ack(&in_hand).await.unwrap_err().code(),
        Code::NotFound
    );
}

#[tokio::test]
async fn capacity_that_came_without_a_leader_unblocks() {
    let suite = Suite::start().await;
    let seen = suite.store.current_revision().await.unwrap();
    let blocked = model::Evaluation {
        status: EvalStatus::Blocked,
        snapshot_index: seen.max(1),
        ..evaluation(1, &service("web", 1))
    };
    suite.create_eval(&blocked).await;
    suite.create_node(&node(1)).await;
    let leader = suite.leader().await;
    let mut worker = suite.worker(&leader.address, 1).await;
    assert_eq!(id_of(&worker.next().await), blocked.id);
}

#[tokio::test]
async fn scenario_093_the_fence_refuses_the_writes_of_a_deposed_leader() {
    let suite = Suite::start().await;
    let deposed = suite.leader().await;
    let mut worker = suite.worker(&deposed.address, 10).await;
    let job = service("web", 1);
    suite.create_job(&job).await;
    let eval = evaluation(1, &job);
    let created = suite.create_eval(&eval).await;
    let delivery = worker.next().await;

    // Its key vanishes under it and another is elected; its lease lives on, so it does not know.
    let other = suite.replica().await;
    let (_, term) = suite.elected().await.unwrap();
    let mut txn = suite.txn();
    txn.add(&writes::delete(
        &Key::Election(eval_broker::SERVICE.to_owned()),
        term,
    ))
    .unwrap();
    suite.commit(&txn).await;
    suite.wait_for_leader(&other.address).await;

    // Delivered too often: the deposed leader tries to write it failed, and learns.
    let mut next = Some(delivery);
    while let Some(delivery) = next {
        if worker.nack(&delivery).await.is_err() {
            break;
        }
        next = worker.try_next().await;
    }
    wait_for("the deposed leader to step down", TIMEOUT, async || {
        let status = suite.try_worker(&deposed.address, 1, &[]).await.err()?;
        (status.code() == Code::FailedPrecondition).then_some(())
    })
    .await;
    let (stored, index) = suite.eval(eval.id).await;
    assert_eq!(
        (stored.status, index),
        (EvalStatus::Pending, created),
        "nothing was written"
    );
    let (_, new_term) = suite.elected().await.unwrap();
    assert!(new_term > term);
    let mut worker = suite.worker(&other.address, 1).await;
    assert_eq!(id_of(&worker.next().await), eval.id);
}

#[tokio::test]
async fn a_drained_replica_ends_by_itself_and_gives_the_lead_away_at_once() {
    let suite = Suite::start().await;
    let mut leader = suite.leader().await;
    assert!(suite.elected().await.is_some(), "{}", suite.endpoint());
    let worker = suite.worker(&leader.address, 1).await;
    leader.drain.cancel();
    drop(worker);
    let ended = tokio::time::timeout(TIMEOUT, &mut leader.running).await;
    ended.expect("it ends").unwrap().unwrap();
    assert_eq!(suite.elected().await, None);
}
