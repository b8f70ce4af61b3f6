//! Metrics of jobs, which the leader serves.

use model::NodeStatus;
use test_kit::builders::service;
use test_kit::wait_for;

use crate::suite::{Suite, TIMEOUT};

#[tokio::test]
async fn the_leader_alone_counts_jobs_and_their_allocations() {
    let suite = Suite::start().await;
    suite.register(1, NodeStatus::Ready).await;
    let leader = suite
        .controller_with(|config| config.telemetry.nomad_metric_names = true)
        .await;
    let job = service("web", 1);
    suite.place(&job, 1).await;
    let wanted = [
        "kafila_cluster_controller_jobs{status=\"running\"} 1",
        "kafila_cluster_controller_jobs_omitted 0",
        "kafila_cluster_controller_job_allocations{namespace=\"default\",job=\"web\"",
        "nomad_nomad_job_status_running 1",
        "nomad_nomad_job_summary_starting{namespace=\"default\",job=\"web\"",
        "nomad_nomad_job_summary_failed{namespace=\"default\",job=\"web\"",
    ];
    wait_for("the metrics of the job", TIMEOUT, async || {
        let text = leader.metrics().await;
        wanted.iter().all(|part| text.contains(part)).then_some(())
    })
    .await;
    let standby = suite.controller().await;
    let text = standby.metrics().await;
    assert!(!text.contains("cluster_controller_jobs"), "{text}");
}
