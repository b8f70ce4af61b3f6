//! Waiting for a condition: never for a length of time.

use std::time::Duration;

use tokio::time::{Instant, sleep};

/// The interval at which a condition is checked: short enough not to delay a test.
const POLL: Duration = Duration::from_millis(5);

/// Waits until `condition` returns something, and returns it.
///
/// # Panics
/// Panics when `condition` has returned nothing within `timeout`.
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
