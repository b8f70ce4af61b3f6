//! The tracker of bad nodes: repeated rejections make a node ineligible, if configured.

use model::{Job, NodeEligibility, Plan};
use test_kit::builders::{node, service};
use test_kit::wait_for;

use crate::suite::{Suite, WAIT_LIMIT, plan_on, submit};

/// Plans of eight jobs, each for the last free place of the only node.
async fn rivals(suite: &Suite) -> Vec<Plan> {
    suite.create_nodes(&[node(1)]).await;
    let mut evals = Vec::new();
    for number in 0..8 {
        let mut job: Job = service(&format!("web-{number}"), 1);
        job.task_groups[0].tasks[0].resources.memory_mib = 8_192;
        evals.push(suite.register(number, &job).await);
    }
    let snapshot = suite.now().await;
    evals.iter().map(|eval| plan_on(&snapshot, eval)).collect()
}

#[tokio::test]
async fn a_node_that_rejects_too_many_plans_is_made_ineligible_with_an_event() {
    let suite = Suite::start().await;
    let applier = suite
        .applier_with(&suite.endpoint.clone(), |config| {
            config.plan_rejection_tracker = true;
            config.plan_rejection_node_threshold = 7;
        })
        .await;
    suite.wait_for_leader(&applier.address).await;
    let plans = rivals(&suite).await;
    let (last, first) = plans.split_last().unwrap();
    for plan in first {
        submit(&applier.address, plan).await.unwrap();
    }
    let eligibility = |snapshot: &state::Snapshot| {
        let node = snapshot.node(node(1).id).unwrap();
        node.value.eligibility
    };
    // One has taken the place, six were rejected.
    assert_eq!(eligibility(&suite.now().await), NodeEligibility::Eligible);
    submit(&applier.address, last).await.unwrap();
    let marked = wait_for("the mark", WAIT_LIMIT, async || {
        let snapshot = suite.now().await;
        let is_marked = eligibility(&snapshot) == NodeEligibility::Ineligible;
        is_marked.then_some(snapshot)
    })
    .await;
    let marked = &marked.node(node(1).id).unwrap().value;
    let event = marked.events.last().unwrap();
    assert_eq!(event.subsystem, "Scheduler");
    assert!(event.message.contains("too many plans rejected"));
}

#[tokio::test]
async fn rejections_are_not_counted_by_default() {
    let suite = Suite::start().await;
    let applier = suite
        .applier_with(&suite.endpoint.clone(), |config| {
            config.plan_rejection_node_threshold = 1;
        })
        .await;
    suite.wait_for_leader(&applier.address).await;
    for plan in rivals(&suite).await {
        submit(&applier.address, &plan).await.unwrap();
    }
    let snapshot = suite.now().await;
    let node = &snapshot.node(node(1).id).unwrap().value;
    assert_eq!(node.eligibility, NodeEligibility::Eligible);
    assert_eq!(node.events, []);
}
