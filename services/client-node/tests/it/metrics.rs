//! Metrics of a node, as a scraper gets them.

use model::ClientStatus;
use test_kit::{scrape, wait_for};

use crate::gateway::{Cluster, Gateway, LIMIT};
use crate::node::{Place, Running, service};

/// Returns the value of the series that begins so.
pub(crate) fn value(text: &str, series: &str) -> Option<f64> {
    let line = text.lines().find(|line| line.starts_with(series))?;
    line.rsplit_once(' ')?.1.parse().ok()
}

#[tokio::test]
async fn reserved_resources_the_machine_and_tasks_are_measured_under_both_names() {
    let place = Place::new();
    let cluster = Cluster::new();
    let gateway = Gateway::start(&cluster).await;
    let mut config = place.config(&[&gateway.address]);
    config.telemetry.nomad_metric_names = true;
    config.publish_allocation_metrics = true;
    config.memory_total_mb = 10_000;
    let node = Running::start(config).await;
    let idle = scrape(node.metrics).await.unwrap();
    assert_eq!(
        value(&idle, "kafila_client_node_allocated_memory_bytes "),
        Some(0.0)
    );
    let all = value(&idle, "kafila_client_node_unallocated_memory_bytes ").unwrap();
    assert!((all - 10_000.0 * 1_048_576.0).abs() < 1.0, "{all}");
    let total = value(
        &idle,
        "kafila_client_node_host_memory_bytes{kind=\"total\"}",
    )
    .unwrap();
    let used = value(&idle, "kafila_client_node_host_memory_bytes{kind=\"used\"}").unwrap();
    assert!(0.0 < used && used < total, "{used} of {total}");
    let disk = value(&idle, "kafila_client_node_host_disk_bytes{kind=\"size\"}").unwrap();
    assert!(disk > 0.0);
    let uptime = value(&idle, "kafila_client_node_host_uptime_seconds ").unwrap();
    assert!(uptime > 0.0);

    let job = service("echo up; exec sleep 600");
    let id = cluster.assign(1, &job);
    cluster.until(id, ClientStatus::Running).await;
    let busy = scrape(node.metrics).await.unwrap();
    let memory = job.task_groups[0].tasks[0].resources.memory_mib;
    let allocated = value(&busy, "kafila_client_node_allocated_memory_bytes ").unwrap();
    assert!(
        (allocated - f64::from(memory) * 1_048_576.0).abs() < 1.0,
        "{allocated}"
    );
    let labels = format!("{{node_id=\"{}\",datacenter=\"dc1\",", gateway_node(&busy));
    let series = format!("nomad_client_allocated_memory{labels}node_class=\"none\",");
    assert_eq!(value(&busy, &series), Some(f64::from(memory)), "{busy}");
    // A control group needs a writable hierarchy of version 2, which containers seldom have.
    if let Some(bytes) = value(&busy, "kafila_client_node_alloc_memory_bytes{") {
        assert!(bytes > 0.0);
        let task = format!("alloc_id=\"{id}\",task=\"server\"");
        assert!(busy.contains(&task), "{busy}");
    }
    cluster.stop(id);
    cluster.until(id, ClientStatus::Complete).await;
    wait_for("the resources to be free", LIMIT, async || {
        let text = scrape(node.metrics).await.unwrap();
        let free = value(&text, "kafila_client_node_allocated_memory_bytes ") == Some(0.0);
        let ended = value(&text, "kafila_client_node_allocations_ended ") == Some(1.0);
        (free && ended).then_some(())
    })
    .await;
    node.stop().await;
}

#[tokio::test]
async fn restarts_and_failures_of_a_task_are_counted_by_job_under_both_names() {
    let place = Place::new();
    let cluster = Cluster::new();
    let gateway = Gateway::start(&cluster).await;
    let mut config = place.config(&[&gateway.address]);
    config.telemetry.nomad_metric_names = true;
    let node = Running::start(config).await;
    let mut job = service("exit 3");
    job.task_groups[0].tasks[0].restart.attempts = 1;
    let id = cluster.assign(1, &job);
    cluster.until(id, ClientStatus::Failed).await;
    let text = scrape(node.metrics).await.unwrap();
    let group = format!(
        "namespace=\"default\",job=\"{}\",task_group=\"web\"",
        job.id
    );
    let task = format!("{group},task=\"server\"");
    for (family, labels, want) in [
        ("allocs_restart", &task, 1.0),
        ("allocs_oom_killed", &task, 0.0),
        ("tasks_failed", &task, 1.0),
        ("allocs_failed", &group, 1.0),
        ("allocs_complete", &group, 0.0),
    ] {
        let series = format!("kafila_client_node_{family}_total{{{labels}}}");
        assert_eq!(value(&text, &series), Some(want), "{series} in {text}");
    }
    let labels = text
        .lines()
        .find(|line| line.starts_with("nomad_client_allocs_restart{"));
    assert!(labels.is_some_and(|line| line.contains(&task)), "{text}");
    node.stop().await;
}

/// Returns the id of the node in the labels of its metrics.
fn gateway_node(text: &str) -> &str {
    let (_, after) = text.split_once("node_id=\"").unwrap();
    after.split('"').next().unwrap()
}
