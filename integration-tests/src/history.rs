//! The whole history, replayed from etcd's first revision and looked at revision by revision.

use anyhow::{Context, Result, ensure};
use invariants::{check_at_rest, check_history};
use store::{Client, ClientOptions};

/// What a history without a fault was made of.
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

/// Replays everything that was ever committed to the etcd at `endpoint`, which must not have been
/// compacted, and looks at every revision and at the state it ends in.
///
/// # Errors
/// What did not hold, all of it.
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
