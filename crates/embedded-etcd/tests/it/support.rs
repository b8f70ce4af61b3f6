//! Shared test support: a bare gRPC client of etcd's services, and a real etcd.

pub(crate) mod etcd_process;
pub(crate) mod raw;

use std::time::Duration;

/// No step of a test on loopback takes this long.
pub(crate) const WAIT_LIMIT: Duration = Duration::from_secs(20);

/// The interval between two polls of a condition.
const LOOK_AGAIN: Duration = Duration::from_millis(2);

/// Waits until `found` returns something, or panics with the text of `describe`.
pub(crate) async fn wait_for<T>(
    mut found: impl AsyncFnMut() -> Option<T>,
    describe: impl Fn() -> String,
) -> T {
    let waiting = async {
        loop {
            if let Some(value) = found().await {
                return value;
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    };
    match tokio::time::timeout(WAIT_LIMIT, waiting).await {
        Ok(value) => value,
        Err(_) => panic!("did not happen within {WAIT_LIMIT:?}: {}", describe()),
    }
}
