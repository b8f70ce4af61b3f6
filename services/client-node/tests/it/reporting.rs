//! Reports to the servers, and their frequency.

use model::ClientStatus;

use crate::node::{Place, Running, mock, start, stored};

#[tokio::test]
async fn scenario_019_many_changes_make_few_calls() {
    let place = Place::new();
    let (cluster, _gateway, node) = start(&place).await;
    let job = mock(serde_json::json!({"run_for": "1h"}));
    let began = tokio::time::Instant::now();
    let ids: Vec<_> = (0..500)
        .map(|number| cluster.assign(number, &job))
        .collect();
    for id in &ids {
        cluster.until(*id, ClientStatus::Running).await;
    }
    let seconds = began.elapsed().as_secs_f64();
    let calls = cluster.facts().calls.clone();
    println!(
        "{} calls for 500 allocations in {seconds:.1} s",
        calls.len()
    );
    // At most one per 25 ms; the first and the last fall anywhere into their intervals.
    #[expect(clippy::cast_precision_loss, reason = "a few hundred")]
    let count = calls.len() as f64;
    assert!(
        count <= seconds / 0.025 + 2.0,
        "{count} calls in {seconds} s"
    );
    node.stop().await;
}

#[tokio::test]
async fn scenario_020_an_unacknowledged_report_is_sent_again_with_the_newest_state() {
    let place = Place::new();
    let (cluster, _gateway, node) = start(&place).await;
    cluster.facts().failing_reports = 3;
    let mut job = test_kit::builders::batch("quick", 1);
    job.task_groups[0].tasks[0].config = serde_json::json!({"run_for": "50ms"})
        .as_object()
        .unwrap()
        .clone();
    let id = cluster.assign(1, &stored(job));
    cluster.until(id, ClientStatus::Complete).await;
    assert_eq!(cluster.facts().failing_reports, 0);
    node.stop().await;
}

#[tokio::test]
async fn a_refused_report_does_not_block_the_others() {
    let place = Place::new();
    let (cluster, _gateway, node) = start(&place).await;
    let job = mock(serde_json::json!({"run_for": "1h"}));
    let refused = cluster.alloc_id(3);
    cluster.facts().refused.insert(refused);
    let ids: Vec<_> = (1..=5).map(|number| cluster.assign(number, &job)).collect();
    for id in ids.iter().filter(|id| **id != refused) {
        cluster.until(*id, ClientStatus::Running).await;
    }
    assert_eq!(cluster.status(refused), None);
    node.stop().await;
}

#[tokio::test]
async fn scenario_021_after_a_restart_only_changes_are_reported() {
    let place = Place::new();
    let (cluster, gateway, node) = start(&place).await;
    let job = mock(serde_json::json!({"run_for": "1h"}));
    let old = cluster.assign(1, &job);
    cluster.until(old, ClientStatus::Running).await;
    node.stop().await;
    cluster.facts().reported.clear();
    let node = Running::start(place.config(&[&gateway.address])).await;
    let new = cluster.assign(2, &job);
    cluster.until(new, ClientStatus::Running).await;
    assert_eq!(cluster.status(old), None, "servers know it");
    node.stop().await;
}
