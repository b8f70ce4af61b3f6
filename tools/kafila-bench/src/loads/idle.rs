//! Nodes without allocations.

use tokio::time::sleep;

use crate::args::Idle;
use crate::bench::Bench;
use crate::outcome::Outcome;

pub(super) async fn run(bench: &Bench, idle: &Idle) -> Outcome {
    let begin = bench.mark();
    sleep(idle.length).await;
    let nodes = u64::from(bench.common.nodes);
    Outcome {
        period: (begin, bench.mark()),
        unit: "node-second",
        count: nodes * idle.length.as_secs(),
        measures: vec![("idle for".to_owned(), format!("{:?}", idle.length))],
    }
}
