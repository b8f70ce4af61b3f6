//! Commits of plans, partial ones and refusals included.

use std::collections::BTreeSet;

use model::{EvalStatus, Evaluation, Job, JobKey};
use proto::internal::v1::SubmitPlanRequest;
use proto::internal::v1::plan_applier_client::PlanApplierClient;
use service_kit::{connect_lazy, request};
use state::{Key, Snapshot};
use test_kit::builders::{batch, node, service};
use test_kit::writes;
use tokio::task::JoinSet;
use tonic::Code;

use crate::suite::{Suite, WAIT_LIMIT, plan_on, submit};

fn placed(snapshot: &Snapshot, key: &JobKey) -> usize {
    snapshot
        .allocs_by_job(key)
        .filter(|alloc| !alloc.alloc.is_server_terminal())
        .count()
}

fn status(snapshot: &Snapshot, eval: &Evaluation) -> EvalStatus {
    snapshot.eval(eval.id).unwrap().value.status
}

#[tokio::test]
async fn a_plan_is_committed_with_its_evaluations_end_in_one_revision() {
    let suite = Suite::start().await;
    let leader = suite.leader().await;
    suite.create_nodes(&[node(1), node(2)]).await;
    let job = service("web", 4);
    let eval = suite.register(1, &job).await;
    let plan = suite.plan(&eval).await;
    let result = submit(&leader.address, &plan).await.unwrap();
    assert_eq!(result.placed.len(), 4);
    assert_eq!(
        (result.refresh_index, &result.refused),
        (0, &None),
        "{result:?}"
    );
    let snapshot = suite.now().await;
    assert_eq!(snapshot.index(), result.commit_index);
    assert_eq!(placed(&snapshot, &job.key()), 4);
    assert_eq!(status(&snapshot, &eval), EvalStatus::Complete);
    for id in &result.placed {
        assert_eq!(
            snapshot.alloc(*id).unwrap().create_index,
            result.commit_index
        );
    }
}

#[tokio::test]
async fn a_plan_submitted_twice_is_committed_once() {
    let suite = Suite::start().await;
    let leader = suite.leader().await;
    suite.create_nodes(&[node(1)]).await;
    let job = service("web", 2);
    let eval = suite.register(1, &job).await;
    let plan = suite.plan(&eval).await;
    submit(&leader.address, &plan).await.unwrap();
    // As when the first answer was lost.
    let again = submit(&leader.address, &plan).await.unwrap();
    assert!(again.refused.is_some(), "{again:?}");
    assert_eq!(placed(&suite.now().await, &job.key()), 2);
}

/// Two schedulers plan for the same free place.
#[tokio::test]
async fn the_last_place_is_assigned_once() {
    let suite = Suite::start().await;
    let leader = suite.leader().await;
    suite.create_nodes(&[node(1)]).await;
    let jobs: Vec<Job> = (0..8)
        .map(|number| {
            let mut job = service(&format!("web-{number}"), 1);
            // Two of them fill the node.
            job.task_groups[0].tasks[0].resources.memory_mib = 4_096;
            job
        })
        .collect();
    let mut evals = Vec::new();
    for (number, job) in (0..).zip(&jobs) {
        evals.push(suite.register(number, job).await);
    }
    let snapshot = suite.now().await;
    let mut submitting = JoinSet::new();
    for eval in &evals {
        let plan = plan_on(&snapshot, eval);
        assert_eq!(plan.placement_count(), 1);
        let address = leader.address.clone();
        submitting.spawn(async move { submit(&address, &plan).await.unwrap() });
    }
    let results = submitting.join_all().await;
    let (taken, refused): (Vec<_>, Vec<_>) =
        results.iter().partition(|result| !result.placed.is_empty());
    assert_eq!((taken.len(), refused.len()), (2, 6), "{results:#?}");
    for result in refused {
        let reason = result.rejected_nodes.values().next().unwrap();
        assert!(reason.contains("memory"), "{reason}");
        let newest = taken.iter().map(|result| result.commit_index).max();
        assert!(
            result.refresh_index > snapshot.index() && Some(result.refresh_index) <= newest,
            "where to look again"
        );
    }
    let snapshot = suite.now().await;
    let all: usize = jobs.iter().map(|job| placed(&snapshot, &job.key())).sum();
    assert_eq!(all, 2);
    let done = evals
        .iter()
        .filter(|eval| status(&snapshot, eval) == EvalStatus::Complete);
    assert_eq!(done.count(), 2, "the others are looked at again");
}

#[tokio::test]
async fn concurrent_plans_share_transactions() {
    let suite = Suite::start().await;
    let leader = suite.steady_leader().await;
    suite.create_nodes(&[node(1)]).await;
    let mut evals = Vec::new();
    for number in 0..64 {
        let mut job = batch(&format!("sum-{number}"), 3);
        // All of them fit on the one node that suits all of them best.
        job.task_groups[0].tasks[0].resources.cpu_mhz = 20;
        job.task_groups[0].tasks[0].resources.memory_mib = 40;
        evals.push(suite.register(number, &job).await);
    }
    let snapshot = suite.now().await;
    let mut submitting = JoinSet::new();
    for eval in &evals {
        let plan = plan_on(&snapshot, eval);
        let address = leader.address.clone();
        submitting.spawn(async move { submit(&address, &plan).await.unwrap() });
    }
    let results = submitting.join_all().await;
    let revisions: BTreeSet<u64> = results.iter().map(|result| result.commit_index).collect();
    // On a busy machine plans arrive one by one, and few of them share.
    assert!(
        revisions.len() < evals.len(),
        "each of 64 plans had a transaction of its own"
    );
    let snapshot = suite.now().await;
    for eval in &evals {
        assert_eq!(status(&snapshot, eval), EvalStatus::Complete);
        assert_eq!(placed(&snapshot, &eval.job), 3);
    }
    assert!(invariants::check_snapshot(&snapshot).is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_plan_larger_than_a_transaction_ends_its_evaluation_with_the_last_piece() {
    let suite = Suite::start().await;
    let leader = suite.steady_leader().await;
    let nodes: Vec<_> = (1..=120).map(node).collect();
    suite.create_nodes(&nodes).await;
    let mut job = batch("many", 3_000);
    job.task_groups[0].tasks[0].resources.cpu_mhz = 50;
    job.task_groups[0].tasks[0].resources.memory_mib = 50;
    let eval = suite.register(1, &job).await;
    let result = submit(&leader.address, &suite.plan(&eval).await)
        .await
        .unwrap();
    assert_eq!(result.placed.len(), 3_000);
    let snapshot = suite.now().await;
    let made: BTreeSet<u64> = snapshot
        .allocs_by_job(&job.key())
        .map(|alloc| alloc.create_index)
        .collect();
    assert!(made.len() >= 3, "in pieces: {made:?}");
    let ended = snapshot.eval(eval.id).unwrap();
    assert_eq!(ended.value.status, EvalStatus::Complete);
    assert_eq!(Some(&ended.modify_index), made.last());
    assert_eq!(result.commit_index, ended.modify_index);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_large_all_at_once_plan_leaves_no_staged_pieces() {
    let suite = Suite::start().await;
    let leader = suite.steady_leader().await;
    let nodes: Vec<_> = (1..=60).map(node).collect();
    suite.create_nodes(&nodes).await;
    let mut job = batch("gang", 1_100);
    job.all_at_once = true;
    job.task_groups[0].tasks[0].resources.cpu_mhz = 50;
    job.task_groups[0].tasks[0].resources.memory_mib = 50;
    let eval = suite.register(1, &job).await;
    let plan = suite.plan(&eval).await;
    let result = submit(&leader.address, &plan).await.unwrap();
    assert_eq!((result.placed.len(), result.refresh_index), (1_100, 0));
    let snapshot = suite.now().await;
    assert_eq!(placed(&snapshot, &job.key()), 1_100);
    let ended = snapshot.eval(eval.id).unwrap();
    assert_eq!(ended.value.status, EvalStatus::Complete);
    assert_eq!(result.commit_index, ended.modify_index);
    assert_eq!(snapshot.plan_pieces().count(), 0);
    assert_eq!(snapshot.plan_commits().count(), 0);
    assert!(invariants::check_snapshot(&snapshot).is_empty());
}

#[tokio::test]
async fn all_at_once_is_all_or_nothing() {
    let suite = Suite::start().await;
    let leader = suite.leader().await;
    suite.create_nodes(&[node(1), node(2)]).await;
    let mut job = batch("gang", 2);
    job.all_at_once = true;
    job.task_groups[0].tasks[0].resources.memory_mib = 5_000;
    let eval = suite.register(1, &job).await;
    let plan = suite.plan(&eval).await;
    assert_eq!(plan.placements.len(), 2);
    // One of its nodes fills up meanwhile.
    let mut other = batch("other", 2);
    other.task_groups[0].tasks[0].resources.memory_mib = 4_000;
    let other_eval = suite.register(2, &other).await;
    submit(&leader.address, &suite.plan(&other_eval).await)
        .await
        .unwrap();
    let result = submit(&leader.address, &plan).await.unwrap();
    assert!(result.placed.is_empty(), "{result:?}");
    assert_ne!(result.refresh_index, 0);
    assert_eq!(placed(&suite.now().await, &job.key()), 0);
}

#[tokio::test]
async fn a_plan_for_a_job_that_has_changed_since_is_refused() {
    let suite = Suite::start().await;
    let leader = suite.leader().await;
    suite.create_nodes(&[node(1)]).await;
    let mut job = service("web", 2);
    let eval = suite.register(1, &job).await;
    let snapshot = suite.now().await;
    let plan = plan_on(&snapshot, &eval);
    job.stop = true;
    let mut txn = suite.txn();
    let before = snapshot.job(&job.key()).unwrap().modify_index;
    txn.add(&writes::update(&Key::Job(job.key()), before, &job))
        .unwrap();
    let changed = suite.commit(&txn).await;
    let result = submit(&leader.address, &plan).await.unwrap();
    assert!(result.refused.is_some(), "{result:?}");
    assert!(result.refresh_index >= changed, "{result:?}");
    assert_eq!(placed(&suite.now().await, &job.key()), 0);
}

#[tokio::test]
async fn a_malformed_plan_is_refused_with_its_field() {
    let suite = Suite::start().await;
    let leader = suite.leader().await;
    suite.create_nodes(&[node(1)]).await;
    let eval = suite.register(1, &service("web", 1)).await;
    let good: proto::internal::v1::Plan = (&suite.plan(&eval).await).into();
    let mut broken_eval = good.clone();
    broken_eval.eval_id = "1234".to_owned();
    let mut broken_outcome = good.clone();
    broken_outcome.eval_outcome.as_mut().unwrap().status = "done".to_owned();
    let table = [
        (None, "plan"),
        (Some(broken_eval), "eval_id"),
        (Some(broken_outcome), "status"),
    ];
    let mut client = PlanApplierClient::new(connect_lazy(&leader.address).unwrap());
    for (plan, field) in table {
        let message = SubmitPlanRequest { plan };
        let status = client
            .submit(request(message, WAIT_LIMIT))
            .await
            .unwrap_err();
        assert_eq!(status.code(), Code::InvalidArgument, "{status:?}");
        assert!(status.message().contains(field), "{status:?}");
    }
}
