//! Jobs of one allocation each, registered at a rate.

use std::time::Duration;

use anyhow::Result;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval};

use crate::args::{Fleet, Kind, Stream};
use crate::bench::Bench;
use crate::jobs;
use crate::outcome::Outcome;
use crate::stats::{per_second, percentile};

/// A rate is kept in steps: a timer of its own for each job would be late at thousands a second.
const STEP: Duration = Duration::from_millis(10);

pub(super) async fn run(bench: &Bench, stream: &Stream) -> Result<Outcome> {
    let nodes = bench.fleet()?;
    let shape = Fleet {
        jobs: 1,
        count: 1,
        r#type: Kind::Batch,
        run_for: stream.run_for,
        spread: false,
        affinity: false,
    };
    let begin = bench.mark();
    let began = Instant::now();
    let mut registering = JoinSet::new();
    let mut registered = Vec::new();
    let mut number = 0;
    let mut steps = interval(STEP);
    steps.set_missed_tick_behavior(MissedTickBehavior::Burst);
    while began.elapsed() < stream.length {
        steps.tick().await;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a count of jobs"
        )]
        let due = (began.elapsed().as_secs_f64() * f64::from(stream.rate)) as u32;
        for number in number..due {
            let id = bench.job_id(number);
            let job = jobs::of(&id, &shape);
            let name = job
                .task_groups
                .first()
                .map_or("", |group| group.name())
                .to_owned();
            let now = nodes.now();
            {
                let mut registry = nodes.registry();
                let group = registry.group("default", &id, &name);
                registry.await_first(group, now);
            }
            let register = bench.registration(job);
            registering.spawn(async move {
                let sent = Instant::now();
                register.await?;
                anyhow::Ok(u64::try_from(sent.elapsed().as_millis())?)
            });
        }
        number = number.max(due);
        while let Some(answer) = registering.try_join_next() {
            registered.push(answer??);
        }
    }
    while let Some(answer) = registering.join_next().await {
        registered.push(answer??);
    }
    let count = u64::from(number);
    bench
        .until("placing", || nodes.registry().awaited() == 0)
        .await?;
    let duration = began.elapsed();
    let placed = nodes.registry().progress.placed_after.clone();
    let line = |name: &str, values: &[u64]| {
        let [p50, p99, most] = [50, 99, 100].map(|per_cent| percentile(values, per_cent));
        (
            name.to_owned(),
            format!("p50 {p50} ms, p99 {p99} ms, longest {most} ms"),
        )
    };
    Ok(Outcome {
        period: (begin, bench.mark()),
        unit: "job",
        count,
        measures: vec![
            (
                "jobs asked for".to_owned(),
                format!("{}/s for {:?}", stream.rate, stream.length),
            ),
            (
                "jobs placed".to_owned(),
                format!("{count}, {:.0}/s", per_second(count, duration)),
            ),
            line("registration until its answer", &registered),
            line(
                "registration until the allocation is known to its node",
                &placed,
            ),
        ],
    })
}
