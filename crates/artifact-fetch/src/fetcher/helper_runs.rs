//! Runs of the helper process, with retries, and the size of the cache after them.

use std::path::Path;

use tracing::warn;

use super::Artifacts;
use crate::failure::Failure;
use crate::process;
use crate::wire::{Order, Report, Work};

impl Artifacts {
    /// Shows the size of the cache after a change.
    pub(super) fn note_cache(&self) {
        let bytes = i64::try_from(self.cache.bytes()).unwrap_or(i64::MAX);
        self.metrics.cache_bytes.set(bytes);
    }

    /// Runs the helper, `attempts` times while the failure may pass.
    pub(super) async fn run(
        &self,
        work: impl Fn() -> Work,
        folder: &Path,
        what: &str,
    ) -> Result<Report, Failure> {
        let mut attempt = 1;
        loop {
            let order = Order {
                folder: folder.to_owned(),
                user: self.workspace.user(),
                sandbox: self.config.sandbox,
                read_paths: self.config.extra_paths(),
                work: work(),
            };
            let permit = self.running.acquire().await;
            let report = process::run(&self.helper, &self.environment, &order).await;
            drop(permit);
            let (message, may_pass) = match report {
                Ok(Report::Failed { message, may_pass }) => (message, may_pass),
                Ok(report) => return Ok(report),
                Err(message) => (message, false),
            };
            if !may_pass || attempt >= self.config.attempts {
                let tries = match attempt {
                    1 => String::new(),
                    tries => format!(" ({tries} attempts)"),
                };
                return Err(Failure::passing(format!("{message}{tries}")));
            }
            let delay = crate::retry::delay(attempt, &mut rand::rng());
            warn!(
                what,
                attempt,
                error = message,
                ?delay,
                "download failed, retrying"
            );
            tokio::time::sleep(delay).await;
            attempt += 1;
        }
    }
}
