//! Jobs with many allocations, until all of them run.

use std::time::Duration;

use anyhow::Result;
use tokio::time::Instant;

use crate::args::Fleet;
use crate::bench::Bench;
use crate::outcome::Outcome;
use crate::stats::per_second;

pub(super) async fn run(bench: &Bench, fleet: &Fleet) -> Result<Outcome> {
    let begin = bench.mark();
    let filled = fill(bench, fleet).await?;
    let count = filled.count;
    let line = |name: &str, duration: Duration| {
        let rate = per_second(count, duration);
        (
            name.to_owned(),
            format!("{:.2} s, {rate:.0}/s", duration.as_secs_f64()),
        )
    };
    Ok(Outcome {
        period: (begin, bench.mark()),
        unit: "allocation",
        count,
        measures: vec![
            (
                "all jobs registered".to_owned(),
                format!("{:.2} s", filled.registered.as_secs_f64()),
            ),
            line(
                "all allocations placed, and known to their nodes",
                filled.placed,
            ),
            line("all allocations reported running", filled.running),
        ],
    })
}

/// A running fleet, with the times since its first registration.
pub(super) struct Filled {
    pub(super) count: u64,
    pub(super) registered: Duration,
    pub(super) placed: Duration,
    pub(super) running: Duration,
}

/// Registers the jobs and waits until all allocations run.
pub(super) async fn fill(bench: &Bench, fleet: &Fleet) -> Result<Filled> {
    let count = u64::from(fleet.jobs) * u64::from(fleet.count);
    let began = Instant::now();
    let registering = bench.register_all(fleet);
    let placing = bench.reach("placing", began, |placed, _| placed >= count);
    let (registered, placed) = tokio::try_join!(registering, placing)?;
    let running = bench.reach("starting", began, |_, running| running >= count);
    Ok(Filled {
        count,
        registered,
        placed,
        running: running.await?,
    })
}
