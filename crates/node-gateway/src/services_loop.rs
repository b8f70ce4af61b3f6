//! The loop that removes service registrations which no report ends: of lost and of collected
//! allocations.
//!
//! Every gateway runs it. A deletion compares the revision that was read, so of two gateways one
//! deletes, and a report that came meanwhile wins.

use std::sync::Arc;
use std::time::Duration;

use admission::services::leftovers;
use gateway_core::Core;
use store::Commit;
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

/// The interval of the scan. Readers do not get such registrations, so only their bytes wait for it.
const INTERVAL: Duration = Duration::from_secs(30);
/// The pause after a deletion, until the rest is deleted: the loss of a large node leaves thousands.
const PAUSE: Duration = Duration::from_millis(500);

/// Runs until stopped.
pub(crate) async fn run(core: Arc<Core>, stop: CancellationToken) {
    let mut wait = INTERVAL;
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(wait) => {}
        }
        wait = INTERVAL;
        let deletions = leftovers(&core.replica.snapshot());
        if deletions.is_empty() {
            continue;
        }
        match core.commit(&deletions, core.deadline()).await {
            Ok(Commit::Done { revision }) => {
                wait = PAUSE;
                debug!(
                    count = deletions.len(),
                    revision, "service registrations removed"
                );
            }
            // Another gateway was first, or a report: the next scan sees what is left.
            Ok(Commit::Conflict(_)) => {}
            Err(error) => {
                let error = error.message();
                warn!(error, "cannot remove service registrations; retrying");
            }
        }
    }
}
