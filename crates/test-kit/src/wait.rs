//! Waiting for a condition: never for a span of time.

use std::time::Duration;

use tokio::time::{Instant, sleep};

/// How often a condition is looked at: often enough to cost a test nothing.
const POLL: Duration = Duration::from_millis(5);

/// Waits until `condition` returns something, and returns it.
///
/// # Panics
/// When it has returned nothing within `timeout`.
pub async fn wait_for<T>(
    what: &str,
    timeout: Duration,
    mut condition: impl AsyncFnMut() -> Option<T>,
) -> T {
    let deadline = Instant::now() + timeout;
    loop {
        if let Some(found) = condition().await {
            return found;
        }
        assert!(
            Instant::now() < deadline,
            "waited {timeout:?} in vain for {what}"
        );
        sleep(POLL).await;
    }
}
