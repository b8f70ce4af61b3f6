//! Reads that wait for a change.

use std::time::Duration;

use proto::v1;
use test_kit::wait_for;
use tokio::time::Instant;

use crate::support::{Suite, WAIT_LIMIT, ask, job};

fn options(min_index: u64, wait: Duration) -> v1::QueryOptions {
    v1::QueryOptions {
        min_index,
        wait: Some(proto::duration_to_wire(wait)),
        ..v1::QueryOptions::default()
    }
}

/// Waits until so many reads block at the gateway.
async fn blocked(suite: &Suite, gateway: usize, count: usize) {
    let line = format!("kafila_api_gateway_blocked_queries {count}\n");
    wait_for("reads to block", WAIT_LIMIT, async || {
        suite.metrics(gateway).await.contains(&line).then_some(())
    })
    .await;
}

#[tokio::test]
async fn scenario_083_a_list_wakes_when_its_table_changes_and_not_before() {
    let suite = Suite::start(2).await;
    let first = suite.register(&job("web")).await;
    let request = |index| v1::ListJobsRequest {
        options: Some(options(index, WAIT_LIMIT)),
    };
    let now = suite
        .jobs(0)
        .list(ask(request(0)))
        .await
        .unwrap()
        .into_inner();
    let index = now.meta.unwrap().index;
    assert!(index >= first.index);
    let mut jobs = suite.jobs(0);
    let waiting = tokio::spawn(async move { jobs.list(ask(request(index))).await });
    blocked(&suite, 0, 1).await;
    // A node is none of its tables.
    suite.put_node(&crate::support::node(1)).await;
    assert!(!waiting.is_finished());
    let register = v1::RegisterJobRequest {
        job: Some((&job("db")).into()),
        ..Default::default()
    };
    let second = suite
        .jobs(1)
        .register(ask(register))
        .await
        .unwrap()
        .into_inner();
    let woken = waiting.await.unwrap().unwrap().into_inner();
    assert_eq!(woken.jobs.len(), 2);
    assert_eq!(woken.meta.unwrap().index, second.index);
    blocked(&suite, 0, 0).await;
}

#[tokio::test]
async fn an_object_wakes_when_it_changes_and_sleeps_on_when_another_does() {
    let suite = Suite::start(1).await;
    let web = suite.register(&job("web")).await;
    let get = v1::GetEvaluationRequest {
        options: Some(options(web.eval_create_index, WAIT_LIMIT)),
        eval_id: web.eval_id.clone(),
    };
    let mut evaluations = suite.evaluations(0);
    let waiting = tokio::spawn(async move { evaluations.get(ask(get)).await });
    blocked(&suite, 0, 1).await;
    suite.register(&job("db")).await;
    let key = state::Key::Eval(web.eval_id.parse().unwrap());
    let state::Entity::Eval(mut eval) = suite.get(&key).await.unwrap().entity else {
        panic!()
    };
    assert!(!waiting.is_finished());
    eval.status = model::EvalStatus::Complete;
    let revision = suite.put(&key, &state::Entity::Eval(eval)).await;
    let woken = waiting.await.unwrap().unwrap().into_inner();
    assert_eq!(woken.evaluation.unwrap().status, "complete");
    assert_eq!(woken.meta.unwrap().index, revision);
}

#[tokio::test]
async fn a_changed_job_status_wakes_blocking_queries_of_the_job() {
    let (suite, job, node) = (Suite::start(1).await, job("web"), crate::support::node(1));
    let registered = suite.register(&job).await;
    let get = v1::GetJobRequest {
        options: Some(options(registered.index, WAIT_LIMIT)),
        job_id: "web".to_owned(),
        version: None,
    };
    let mut jobs = suite.jobs(0);
    let waiting = tokio::spawn(async move { jobs.get(ask(get)).await });
    blocked(&suite, 0, 1).await;
    suite
        .put_alloc(&crate::support::alloc(1, &job, &node, registered.index))
        .await;
    let woken = waiting.await.unwrap().unwrap().into_inner();
    assert_eq!(woken.job.unwrap().status.as_deref(), Some("running"));
}

#[tokio::test]
async fn a_read_can_wait_for_a_job_that_does_not_exist_yet() {
    let suite = Suite::start(1).await;
    let first = suite.register(&job("db")).await;
    let get = v1::GetJobRequest {
        options: Some(options(first.index, WAIT_LIMIT)),
        job_id: "web".to_owned(),
        version: None,
    };
    let mut jobs = suite.jobs(0);
    let waiting = tokio::spawn(async move { jobs.get(ask(get)).await });
    blocked(&suite, 0, 1).await;
    suite.register(&job("web")).await;
    let woken = waiting.await.unwrap().unwrap().into_inner();
    assert_eq!(woken.job.unwrap().id.as_deref(), Some("web"));
}

#[tokio::test]
async fn a_wait_that_is_over_is_answered_with_what_there_is() {
    let suite = Suite::start(1).await;
    suite.register(&job("web")).await;
    let request = v1::ListJobsRequest {
        options: Some(options(1_000_000, Duration::from_millis(50))),
    };
    let list = suite.jobs(0).list(ask(request)).await.unwrap().into_inner();
    assert_eq!(list.jobs.len(), 1);
    assert!(list.meta.unwrap().index < 1_000_000);
}

#[tokio::test]
async fn a_caller_with_a_short_timeout_is_answered_within_it() {
    let suite = Suite::start(1).await;
    suite.register(&job("web")).await;
    let request = v1::ListJobsRequest {
        options: Some(options(1_000_000, WAIT_LIMIT)),
    };
    let timeout = Duration::from_secs(2);
    let asked = Instant::now();
    let list = suite
        .jobs(0)
        .list(service_kit::request(request, timeout))
        .await
        .unwrap();
    assert_eq!(list.into_inner().jobs.len(), 1);
    assert!(asked.elapsed() < timeout);
}

#[tokio::test]
async fn a_shutdown_answers_blocking_queries() {
    let mut suite = Suite::start(1).await;
    suite.register(&job("web")).await;
    let request = v1::ListJobsRequest {
        options: Some(options(1_000_000, WAIT_LIMIT)),
    };
    let mut jobs = suite.jobs(0);
    let waiting = tokio::spawn(async move { jobs.list(ask(request)).await });
    blocked(&suite, 0, 1).await;
    suite.gateways[0].drain.cancel();
    assert_eq!(waiting.await.unwrap().unwrap().into_inner().jobs.len(), 1);
    let gateway = &mut suite.gateways[0];
    tokio::time::timeout(WAIT_LIMIT, &mut gateway.running)
        .await
        .unwrap()
        .unwrap()
        .unwrap();
}
