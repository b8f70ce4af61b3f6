//! A share of the nodes ends at once.

use anyhow::{Result, ensure};
use rand::seq::SliceRandom as _;
use tokio::time::Instant;

use super::fleet;
use crate::args::Storm;
use crate::bench::Bench;
use crate::outcome::Outcome;
use crate::stats::percentile;

pub(super) async fn run(bench: &Bench, storm: &Storm) -> Result<Outcome> {
    let nodes = bench.fleet()?;
    fleet::fill(bench, &storm.fleet).await?;
    let mut numbers: Vec<u32> = (0..nodes.size()).collect();
    numbers.shuffle(&mut rand::rng());
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a share of a size"
    )]
    let dying = (f64::from(nodes.size()) * storm.share).round() as usize;
    ensure!(
        dying < numbers.len(),
        "-share={} leaves no node",
        storm.share
    );
    numbers.truncate(dying);
    let begin = bench.mark();
    let began = Instant::now();
    nodes.kill(numbers);
    let lost = nodes.registry().missing();
    bench
        .until("replacing", || nodes.registry().missing() == 0)
        .await?;
    let replaced = began.elapsed();
    let after = nodes.registry().progress.replaced_after.clone();
    Ok(Outcome {
        period: (begin, bench.mark()),
        unit: "replacement",
        count: u64::try_from(lost)?,
        measures: vec![
            ("nodes that died".to_owned(), dying.to_string()),
            (
                "allocations that died with them".to_owned(),
                lost.to_string(),
            ),
            (
                "from the deaths to the last start of a replacement".to_owned(),
                format!("{:.2} s", replaced.as_secs_f64()),
            ),
            (
                "… of half of them".to_owned(),
                format!("{} ms", percentile(&after, 50)),
            ),
        ],
    })
}
