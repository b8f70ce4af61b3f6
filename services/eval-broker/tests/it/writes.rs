//! Writes of the broker: failed evaluations, follow-ups, cancellations.

use std::time::Duration;

use model::{EvalStatus, TriggeredBy};
use state::{Entity, Key};
use test_kit::builders::{evaluation, service};
use test_kit::wait_for;

use crate::suite::{Suite, TIMEOUT, Worker};

async fn nack_until_it_fails(worker: &mut Worker) {
    for attempt in 1..=3 {
        let delivery = worker.next().await;
        assert_eq!(delivery.attempt, attempt);
        worker.nack(&delivery).await.unwrap();
    }
}

#[tokio::test]
async fn an_evaluation_delivered_too_often_is_failed_and_followed_up_in_one_transaction() {
    let suite = Suite::start_with(|config| {
        config.follow_up_delay = Duration::from_secs(60);
        config.follow_up_spread = Duration::from_secs(300);
    })
    .await;
    let leader = suite.leader().await;
    let mut worker = suite.worker(&leader.address, 10).await;
    let job = service("web", 1);
    suite.create_job(&job).await;
    let eval = evaluation(1, &job);
    suite.create_eval(&eval).await;
    nack_until_it_fails(&mut worker).await;
    let (failed, index) = wait_for("a failed evaluation", TIMEOUT, async || {
        let (stored, index) = suite.eval(eval.id).await;
        (stored.status == EvalStatus::Failed).then_some((stored, index))
    })
    .await;
    assert!(
        failed.status_description.contains("delivery limit"),
        "{failed:?}"
    );
    let (next, next_index) = suite.eval(failed.next_eval.expect("a follow-up")).await;
    assert_eq!(next_index, index, "one transaction");
    assert_eq!(
        (next.previous_eval, next.status),
        (Some(eval.id), EvalStatus::Pending)
    );
    assert_eq!(next.triggered_by, TriggeredBy::FailedFollowUp);
    let wait = next.wait_until.since(failed.modify_time);
    assert!(
        wait >= Duration::from_secs(60) && wait < Duration::from_secs(360),
        "{wait:?}"
    );
    let stats = suite.stats(&leader.address).await;
    assert_eq!((stats.delayed, stats.failed), (1, 0));
}

#[tokio::test]
async fn a_failed_evaluation_of_a_purged_job_has_no_follow_up() {
    let suite = Suite::start().await;
    let leader = suite.leader().await;
    let mut worker = suite.worker(&leader.address, 10).await;
    let eval = evaluation(1, &service("gone", 1));
    suite.create_eval(&eval).await;
    nack_until_it_fails(&mut worker).await;
    let failed = wait_for("a failed evaluation", TIMEOUT, async || {
        let (stored, _) = suite.eval(eval.id).await;
        (stored.status == EvalStatus::Failed).then_some(stored)
    })
    .await;
    assert_eq!(failed.next_eval, None);
}

#[tokio::test]
async fn needless_evaluations_are_canceled() {
    let suite = Suite::start().await;
    let leader = suite.leader().await;
    let mut worker = suite.worker(&leader.address, 1).await;
    let job = service("web", 1);
    let evals: Vec<_> = (1..=4).map(|number| evaluation(number, &job)).collect();
    for eval in &evals {
        suite.create_eval(eval).await;
    }
    worker.next().await;
    suite
        .finish(evals[0].id, |eval| eval.status = EvalStatus::Complete)
        .await;
    for eval in &evals[1..3] {
        let canceled = wait_for("a canceled evaluation", TIMEOUT, async || {
            let (stored, _) = suite.eval(eval.id).await;
            (stored.status == EvalStatus::Canceled).then_some(stored)
        })
        .await;
        assert!(
            canceled.status_description.contains("newer evaluation"),
            "{canceled:?}"
        );
    }
    let (last, _) = suite.eval(evals[3].id).await;
    assert_eq!(last.status, EvalStatus::Pending);
    wait_for("the broker to see it", TIMEOUT, async || {
        (suite.stats(&leader.address).await.ready == 1).then_some(())
    })
    .await;
}

#[tokio::test]
async fn evaluations_too_large_for_one_transaction_are_canceled_in_several() {
    let suite = Suite::start().await;
    let leader = suite.leader().await;
    let job = service("web", 1);
    // Six of 300 kB do not fit into 1 MiB.
    let text = "x".repeat(300_000);
    let evals: Vec<_> = (1..=8)
        .map(|number| model::Evaluation {
            queued_allocs: [(text.clone(), 1)].into(),
            ..evaluation(number, &job)
        })
        .collect();
    for eval in &evals {
        suite.create_eval(eval).await;
    }
    suite
        .finish(evals[0].id, |eval| eval.status = EvalStatus::Complete)
        .await;
    for eval in &evals[1..7] {
        wait_for("a canceled evaluation", TIMEOUT, async || {
            match suite.store.get(&Key::Eval(eval.id)).await.unwrap()?.entity {
                Entity::Eval(stored) => (stored.status == EvalStatus::Canceled).then_some(()),
                _ => None,
            }
        })
        .await;
    }
    drop(leader);
}
