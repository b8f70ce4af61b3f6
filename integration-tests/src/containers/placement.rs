//! Proof that the whole suite works: a job is placed.

use std::time::Duration;

use anyhow::{Result, ensure};

use crate::api::{Api, eventually};
use crate::load::sleeper;

/// Timeout until everything is as promised: an election, the nack timeout of a killed worker's
/// evaluations, and room for a busy machine.
pub const SETTLE_TIMEOUT: Duration = Duration::from_secs(150);

/// Registers a job, waits until it runs, and stops it: proof that the whole suite works.
///
/// # Errors
/// It does not run in time.
pub async fn place(api: &Api, name: &str) -> Result<()> {
    api.register_surely(&sleeper(name, 1), name, SETTLE_TIMEOUT)
        .await?;
    eventually(SETTLE_TIMEOUT, || async {
        let allocations = api.allocations(name).await?;
        let is_running = allocations
            .iter()
            .any(|alloc| alloc.client_status == "running");
        ensure!(is_running, "{name} does not run: {allocations:?}");
        Ok(())
    })
    .await?;
    api.stop_surely(name, true, SETTLE_TIMEOUT).await
}
