//! A worker and its deliveries.

use model::{Algorithm, EvalStatus};
use test_kit::wait_for;
use tokio::sync::oneshot;
use tonic::Status;

use crate::fakes::{Answer, Received, TIMEOUT};
use crate::suite::Suite;

fn ack(token: &str) -> Received {
    Received::Ack(token.to_owned())
}

fn nack(token: &str) -> Received {
    Received::Nack(token.to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_evaluation_becomes_a_plan_and_is_acked_once_it_is_committed() {
    let mut suite = Suite::start().await;
    suite.work(|_| {}).await;
    let (eval, index) = suite.register("web", 3).await;
    suite.deliver(&eval, index, "t1");
    suite
        .wait_for_received("the ack", |received| *received == ack("t1"))
        .await;
    let snapshot = suite.newest().await;
    assert_eq!(snapshot.allocs_by_job(&eval.job).count(), 3);
    assert_eq!(
        snapshot.eval(eval.id).unwrap().value.status,
        EvalStatus::Complete
    );
    let plans = suite.applier.plans.lock().unwrap().clone();
    assert_eq!(plans.len(), 1);
    assert_eq!(plans[0].eval_token, "t1");
    assert!(plans[0].snapshot_index >= index);
    // Its place is free again.
    suite
        .wait_for_received("a grant", |received| *received == Received::Granted(1))
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_next_evaluation_uses_the_configuration_set_before_it() {
    let mut suite = Suite::start().await;
    suite.work(|_| {}).await;
    let first = suite.place("a").await;
    assert_eq!(suite.place("b").await, first, "nodes fill up by default");
    suite.choose(Algorithm::Spread).await;
    assert_ne!(suite.place("c").await, first);
    suite.choose(Algorithm::Binpack).await;
    assert_eq!(suite.place("d").await, first);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_asks_for_a_few_evaluations_for_each_worker() {
    let mut suite = Suite::start().await;
    suite
        .work(|config| {
            config.workers = 3;
            config.job_types = vec!["service".to_owned()];
        })
        .await;
    let opened = Received::Opened {
        credit: 12,
        types: vec!["service".to_owned()],
    };
    assert_eq!(suite.broker.received(), [opened]);
}

#[tokio::test(flavor = "multi_thread")]
async fn rejected_placements_are_planned_again_on_the_committed_state() {
    let mut suite = Suite::start().await;
    suite.answer([Answer::CommitNodes(1), Answer::CommitNodes(1)]);
    suite.work(|_| {}).await;
    let (eval, index) = suite.register("web", 4).await;
    suite.deliver(&eval, index, "t1");
    suite
        .wait_for_received("the ack", |received| *received == ack("t1"))
        .await;
    assert_eq!(suite.newest().await.allocs_by_job(&eval.job).count(), 4);
    let plans = suite.applier.plans.lock().unwrap().clone();
    let placements: Vec<_> = plans.iter().map(model::Plan::placement_count).collect();
    assert_eq!(placements, [4, 3, 2], "each node takes one");
    assert!(plans[1].snapshot_index > plans[0].snapshot_index);
}

#[tokio::test(flavor = "multi_thread")]
async fn scenario_009_a_partial_commit_without_a_revision_gives_the_evaluation_back() {
    let mut suite = Suite::start().await;
    suite.answer([Answer::CommitNodesSilently(1)]);
    suite.work(|_| {}).await;
    let (eval, index) = suite.register("web", 4).await;
    suite.deliver(&eval, index, "t1");
    let received = suite
        .wait_for_received("an answer", |received| {
            matches!(received, Received::Ack(_) | Received::Nack(_))
        })
        .await;
    assert_eq!(received, nack("t1"));
    assert_eq!(suite.plan_count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_evaluation_that_gets_nowhere_fails_and_leaves_a_blocked_one() {
    let mut suite = Suite::start().await;
    suite.answer((0..5).map(|_| Answer::Refuse));
    suite.work(|_| {}).await;
    let (eval, index) = suite.register("web", 1).await;
    suite.deliver(&eval, index, "t1");
    suite
        .wait_for_received("the ack", |received| *received == ack("t1"))
        .await;
    assert_eq!(
        suite.plan_count(),
        6,
        "five tries, and the plan that gives up"
    );
    let snapshot = suite.newest().await;
    let ended = &snapshot.eval(eval.id).unwrap().value;
    assert_eq!(ended.status, EvalStatus::Failed);
    assert_eq!(
        ended.status_description, "maximum attempts reached (5): no luck",
        "what the plan-applier said last is the reason"
    );
    let blocked = snapshot.eval(ended.blocked_eval.unwrap()).unwrap();
    assert_eq!(blocked.value.status, EvalStatus::Blocked);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_is_submitted_again_until_a_plan_applier_takes_it() {
    let mut suite = Suite::start().await;
    suite.answer([
        Answer::Fail(Status::failed_precondition("not the leader")),
        Answer::Fail(Status::unavailable("elections")),
    ]);
    suite.work(|_| {}).await;
    let (eval, index) = suite.register("web", 1).await;
    suite.deliver(&eval, index, "t1");
    suite
        .wait_for_received("the ack", |received| *received == ack("t1"))
        .await;
    assert_eq!(suite.plan_count(), 3);
    assert_eq!(suite.newest().await.allocs_by_job(&eval.job).count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_whose_answer_is_lost_is_not_placed_twice() {
    let mut suite = Suite::start().await;
    suite.answer([Answer::CommitSilently]);
    suite.work(|_| {}).await;
    let (eval, index) = suite.register("web", 2).await;
    suite.deliver(&eval, index, "t1");
    suite
        .wait_for_received("the ack", |received| *received == ack("t1"))
        .await;
    assert_eq!(suite.newest().await.allocs_by_job(&eval.job).count(), 2);
    let plans = suite.applier.plans.lock().unwrap().clone();
    assert_eq!(plans.len(), 2, "offered again, and found done");
    assert_eq!(plans[0], plans[1]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_that_makes_no_sense_is_given_back() {
    let mut suite = Suite::start().await;
    suite.answer([Answer::Fail(Status::invalid_argument("plan: no"))]);
    suite.work(|_| {}).await;
    let (eval, index) = suite.register("web", 1).await;
    suite.deliver(&eval, index, "t1");
    suite
        .wait_for_received("the nack", |received| *received == nack("t1"))
        .await;
    assert_eq!(suite.plan_count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_index_that_never_comes_sends_the_evaluation_back() {
    let mut suite = Suite::start().await;
    suite.work(|_| {}).await;
    let (eval, index) = suite.register("web", 1).await;
    suite.deliver(&eval, index + 1_000, "t1");
    suite
        .wait_for_received("the nack", |received| *received == nack("t1"))
        .await;
    assert_eq!(suite.plan_count(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_evaluation_that_has_ended_is_acked_without_a_plan() {
    let mut suite = Suite::start().await;
    suite.work(|_| {}).await;
    let (eval, index) = suite.register("web", 1).await;
    suite.deliver(&eval, index, "t1");
    suite
        .wait_for_received("the first ack", |received| *received == ack("t1"))
        .await;
    let ended = suite.newest().await.eval(eval.id).unwrap().modify_index;
    suite.deliver(&eval, ended, "t2");
    suite
        .wait_for_received("the second ack", |received| *received == ack("t2"))
        .await;
    assert_eq!(suite.plan_count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn work_that_takes_long_is_extended_until_the_broker_takes_it_back() {
    let mut suite = Suite::start().await;
    let (_release, held) = oneshot::channel();
    suite.answer([Answer::Hold(held)]);
    suite.work(|_| {}).await;
    let (eval, index) = suite.register("web", 1).await;
    suite.broker.deliver(proto::internal::v1::Delivery {
        eval_id: eval.id.to_string(),
        token: "t1".to_owned(),
        wait_index: index,
        attempt: 1,
        nack_timeout: Some(proto::duration_to_wire(std::time::Duration::from_millis(
            60,
        ))),
    });
    suite
        .wait_for_received("an extension", |received| {
            *received == Received::Extend("t1".to_owned())
        })
        .await;
    suite
        .broker
        .taken_back
        .lock()
        .unwrap()
        .push("t1".to_owned());
    // It is dropped without another word, and its place is free.
    suite
        .wait_for_received("a grant", |received| *received == Received::Granted(1))
        .await;
    let received = suite.broker.received();
    assert!(
        !received.contains(&ack("t1")) && !received.contains(&nack("t1")),
        "{received:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_small_plan_without_an_answer_takes_no_credit_of_the_next_session() {
    let mut suite = Suite::start().await;
    let (release, held) = oneshot::channel();
    suite.answer([Answer::Hold(held)]);
    suite.work(|_| {}).await;
    let (eval, index) = suite.register("web", 1).await;
    suite.deliver(&eval, index, "t1");
    wait_for("the plan", TIMEOUT, async || {
        (suite.plan_count() == 1).then_some(())
    })
    .await;
    suite.broker.hang_up();
    suite
        .wait_for_received("another session", |received| {
            matches!(received, Received::Opened { credit: 8, .. })
        })
        .await;
    release.send(()).unwrap();
    suite
        .wait_for_received("the ack", |received| *received == ack("t1"))
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_that_has_been_succeeded_is_waited_for_no_longer() {
    let mut suite = Suite::start().await;
    // The plan-applier is suspended with the plan: nothing is answered, and the connection stays.
    let (_release, held) = oneshot::channel();
    suite.answer([Answer::Hold(held)]);
    suite.work(|_| {}).await;
    let (eval, index) = suite.register("web", 1).await;
    suite.deliver(&eval, index, "t1");
    wait_for("the plan", TIMEOUT, async || {
        (suite.plan_count() == 1).then_some(())
    })
    .await;
    suite.elect_again("plan-applier").await;
    suite
        .wait_for_received("the ack", |received| *received == ack("t1"))
        .await;
    assert_eq!(suite.plan_count(), 2, "offered to the successor");

    let opened = |received: &[Received]| {
        let sessions = received.iter();
        sessions
            .filter(|received| matches!(received, Received::Opened { .. }))
            .count()
    };
    assert_eq!(opened(&suite.broker.received()), 1);
    suite.elect_again("eval-broker").await;
    wait_for("a session with the successor", TIMEOUT, async || {
        (opened(&suite.broker.received()) == 2).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_drain_finishes_the_evaluations_in_hand() {
    let mut suite = Suite::start().await;
    let (release, held) = oneshot::channel();
    suite.answer([Answer::Hold(held)]);
    suite.work(|_| {}).await;
    let (eval, index) = suite.register("web", 1).await;
    suite.deliver(&eval, index, "t1");
    wait_for("the plan", TIMEOUT, async || {
        (suite.plan_count() == 1).then_some(())
    })
    .await;
    suite.drain.cancel();
    release.send(()).unwrap();
    let running = suite.running.take().unwrap();
    tokio::time::timeout(TIMEOUT, running)
        .await
        .unwrap()
        .unwrap()
        .unwrap();
    assert!(suite.broker.received().contains(&ack("t1")));
    assert_eq!(suite.newest().await.allocs_by_job(&eval.job).count(), 1);
}
