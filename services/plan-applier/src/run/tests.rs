//! A change of leaders in the middle of a large plan.

use model::EvalStatus;
use test_kit::builders;
use tracing::Span;

use super::*;
use crate::submission_queue::{SubmissionQueue, SubmitError};
use crate::testing::{NOW, Refusals, StoreFixture, Term as Leading};

/// Leads until the term or the test ends.
async fn leading(leading: &Leading, submissions: &SubmissionQueue) {
    let committer = leading.committer.clone();
    let context = Context {
        replica: committer.replica.clone(),
        metrics: committer.metrics.clone(),
        committer,
        clock: Clock::real(),
        verify_threads: 1,
        bad_nodes: None,
    };
    lead(context, submissions.open(), 1, CancellationToken::new()).await;
}

/// A plan in four transactions, whose writer ends after the second.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn scenario_094_the_next_leader_places_the_rest_of_a_large_plan() {
    let ground = StoreFixture::start().await;
    let nodes: Vec<_> = (1..=120).map(builders::node).collect();
    let mut job = builders::batch("many", 3_000);
    job.task_groups[0].tasks[0].resources.cpu_mhz = 50;
    job.task_groups[0].tasks[0].resources.memory_mib = 50;
    let eval = ground.register(&job, &nodes).await;
    let first = ground.lead().await;
    let at_most = usize::MAX;
    let taken = 2;
    first
        .committer
        .writer
        .set_refusals(Refusals::DeposedAfter { taken, at_most });
    let plan = Box::new(ground.plan(&eval).await);
    assert_eq!(plan.placement_count(), 3_000);
    let snapshot = ground.now().await;
    let PlanVerification::Accepted(accepted) = applier::verify(&snapshot, &plan, NOW) else {
        panic!("refused");
    };
    assert!(accepted.pieces.len() >= 3, "{}", accepted.pieces.len());
    let submissions = SubmissionQueue::default();
    let (_, answer) = tokio::join!(leading(&first, &submissions), async {
        // The loop has opened the queue by then.
        tokio::task::yield_now().await;
        submissions.submit(plan, Span::none()).await
    });
    assert!(matches!(answer, Err(SubmitError::TermEnded)), "{answer:?}");
    drop(first);
    let snapshot = ground.now().await;
    let before = snapshot.allocs_by_job(&job.key()).count();
    assert!(before > 0 && before < 3_000, "{before}");
    let open = snapshot.eval(eval.id).unwrap();
    assert_eq!(open.value.status, EvalStatus::Pending, "delivered again");

    let second = ground.lead().await;
    let submissions = SubmissionQueue::default();
    let plan = Box::new(ground.plan(&eval).await);
    assert_eq!(plan.placement_count(), 3_000 - before);
    let result = tokio::select! {
        () = leading(&second, &submissions) => panic!("the term ended"),
        result = async {
            tokio::task::yield_now().await;
            submissions.submit(plan, Span::none()).await
        } => result.unwrap(),
    };
    assert_eq!(result.placed.len(), 3_000 - before);
    let snapshot = ground.now().await;
    assert_eq!(snapshot.allocs_by_job(&job.key()).count(), 3_000);
    let ended = snapshot.eval(eval.id).unwrap();
    assert_eq!(ended.value.status, EvalStatus::Complete);
    // No name twice, no node overcommitted.
    assert!(invariants::check_snapshot(&snapshot).is_empty());
}
