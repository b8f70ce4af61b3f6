//! Updates, drains and losses of nodes on a running fleet.

use std::time::Duration;

use anyhow::Result;
use proto::v1;
use tokio::time::{Instant, sleep};

use super::fleet;
use crate::args::Churn;
use crate::bench::Bench;
use crate::jobs;
use crate::outcome::Outcome;

/// Time between two disturbances of nodes, and for which each lasts.
const DISTURBANCE: Duration = Duration::from_secs(10);
/// Seconds that a drained node has for its allocations.
const DRAIN_DEADLINE_NS: i64 = 5_000_000_000;

pub(super) async fn run(bench: &Bench, churn: &Churn) -> Result<Outcome> {
    let nodes = bench.fleet()?;
    let filled = fleet::fill(bench, &churn.fleet).await?;
    let begin = bench.mark();
    let began = Instant::now();
    let (mut updates, mut drains, mut losses) = (0_u32, 0_u32, 0_u32);
    let mut disturbed_at = Instant::now();
    // The first is drained, the second is gone.
    let mut disturbed: Option<(u32, u32)> = None;
    while began.elapsed() < churn.length {
        let step = Instant::now();
        for _ in 0..churn.updates.min(churn.fleet.jobs) {
            let number = updates % churn.fleet.jobs;
            let mut job = jobs::of(&bench.job_id(number), &churn.fleet);
            job.meta.insert("update".to_owned(), updates.to_string());
            bench.register(job).await?;
            updates += 1;
        }
        if nodes.size() > 2 && disturbed_at.elapsed() >= DISTURBANCE {
            if let Some(pair) = disturbed.take() {
                restore(bench, pair).await?;
            } else {
                let drained = rand::random_range(0..nodes.size());
                let gone = (drained + 1) % nodes.size();
                drain(bench, drained, true).await?;
                nodes.kill([gone]);
                drains += 1;
                losses += 1;
                disturbed = Some((drained, gone));
            }
            disturbed_at = Instant::now();
        }
        sleep(Duration::from_secs(1).saturating_sub(step.elapsed())).await;
    }
    if let Some(pair) = disturbed {
        restore(bench, pair).await?;
    }
    let settling = Instant::now();
    let wanted = usize::try_from(filled.count)?;
    let settled = || {
        let registry = nodes.registry();
        registry.missing() == 0 && registry.running() == wanted
    };
    bench.until("settling", settled).await?;
    Ok(Outcome {
        period: (begin, bench.mark()),
        unit: "update of a job",
        count: u64::from(updates),
        measures: vec![
            ("drains".to_owned(), drains.to_string()),
            ("nodes lost, and back".to_owned(), losses.to_string()),
            (
                "from the last disturbance until all allocations run again".to_owned(),
                format!("{:.2} s", settling.elapsed().as_secs_f64()),
            ),
        ],
    })
}

async fn restore(bench: &Bench, (drained, gone): (u32, u32)) -> Result<()> {
    drain(bench, drained, false).await?;
    bench.fleet()?.revive([gone]).await
}

async fn drain(bench: &Bench, number: u32, begins: bool) -> Result<()> {
    let request = v1::UpdateNodeDrainRequest {
        node_id: bench.fleet()?.node_id(number),
        drain_spec: begins.then_some(v1::DrainSpec {
            deadline_ns: DRAIN_DEADLINE_NS,
            ignore_system_jobs: false,
        }),
        mark_eligible: !begins,
        ..v1::UpdateNodeDrainRequest::default()
    };
    bench.api.nodes().update_drain(request).await?;
    Ok(())
}
