//! Replay of the whole history from etcd's first revision, with a check of every revision.

use anyhow::{Context, Result, ensure};
use invariants::check_at_rest;
use store::{Client, ClientOptions};
use store_test_kit::check_history;

/// Statistics of a history without violations.
#[derive(Debug)]
pub struct Report {
    pub revisions: u64,
    pub allocations: usize,
    pub evaluations: usize,
}

impl std::fmt::Display for Report {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            revisions,
            allocations,
            evaluations,
        } = self;
        write!(
            f,
            "history sound: {revisions} revisions, {allocations} allocations, {evaluations} evaluations"
        )
    }
}

/// Replays every revision of the etcd at `endpoint`, which must not be compacted, and checks every
/// revision and the final state.
///
/// # Errors
/// All violations.
pub async fn check(endpoint: &str) -> Result<Report> {
    let client = Client::connect(&[endpoint.to_owned()], ClientOptions::default()).await?;
    let replayed = check_history(&client)
        .await
        .context("cannot replay the history")?;
    let snapshot = replayed.snapshot;
    let mut violations: Vec<String> = replayed
        .violations
        .iter()
        .map(ToString::to_string)
        .collect();
    violations.extend(check_at_rest(&snapshot).iter().map(ToString::to_string));
    ensure!(
        violations.is_empty(),
        "the history is not sound:\n  {}",
        violations.join("\n  ")
    );
    ensure!(replayed.revisions > 0, "there is no history");
    Ok(Report {
        revisions: replayed.revisions,
        allocations: snapshot.allocs().count(),
        evaluations: snapshot.evals().count(),
    })
}
