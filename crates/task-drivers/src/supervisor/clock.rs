//! The wall clock, for records only; no decision depends on it.

use std::time::UNIX_EPOCH;

use model::{Timestamp, duration_ns};

#[expect(
    clippy::disallowed_methods,
    reason = "a separate process has no injected clock"
)]
pub(super) fn wall() -> Timestamp {
    let since_epoch = std::time::SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    Timestamp(duration_ns::nanos(since_epoch))
}
