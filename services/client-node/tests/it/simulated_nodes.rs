//! Many simulated nodes in one process.

use std::time::Duration;

use client_node::metrics::Metrics;
use client_node::{App, Config, SharedParts};
use model::ClientStatus;
use service_kit::{CancellationToken, IdSource};
use test_kit::wait_for;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::gateway::{Cluster, Gateway, LIMIT};
use crate::node::mock;

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_nodes_share_a_process_and_a_channel() {
    const NODES: usize = 100;
    const ALLOCS: u128 = 20;
    let drain = CancellationToken::new();
    let metrics = Metrics::default();
    let mut nodes = JoinSet::new();
    let mut gateways = Vec::new();
    let mut clusters = Vec::new();
    for number in 0..NODES as u64 {
        // One cluster a node, because this gateway sends every node the same.
        let cluster = Cluster::new();
        cluster.facts().ttl = Duration::from_secs(30);
        let gateway = Gateway::start(&cluster).await;
        let shared = SharedParts {
            channel: service_kit::connect_lazy(&gateway.address).unwrap(),
            metrics: metrics.clone(),
            ids: IdSource::seeded(number),
        };
        let config = Config {
            name: Some(format!("n{number}")),
            ..Config::default()
        };
        nodes.spawn(App::build_simulated(config, shared).run(drain.clone()));
        gateways.push(gateway);
        clusters.push(cluster);
    }
    let began = Instant::now();
    let job = mock(serde_json::json!({"run_for": "1h"}));
    for cluster in &clusters {
        for number in 0..ALLOCS {
            cluster.assign(number, &job);
        }
    }
    let running = || {
        let of = |cluster: &Cluster| {
            let facts = cluster.facts();
            let clients = facts.reported.values();
            clients
                .filter(|client| client.status == ClientStatus::Running)
                .count()
        };
        clusters.iter().map(of).sum::<usize>()
    };
    let all = NODES * usize::try_from(ALLOCS).unwrap();
    wait_for("all to run", LIMIT, async || {
        (running() == all).then_some(())
    })
    .await;
    println!(
        "{all} allocations on {NODES} nodes ran after {:?}",
        began.elapsed()
    );
    assert_eq!(
        metrics.tasks.tasks_running.get(),
        i64::try_from(all).unwrap()
    );
    let names: std::collections::BTreeSet<String> = clusters
        .iter()
        .map(|cluster| cluster.facts().registrations[0].name.clone())
        .collect();
    assert_eq!(names.len(), NODES);
    drain.cancel();
    while let Some(ended) = nodes.join_next().await {
        ended.unwrap().unwrap();
    }
}
