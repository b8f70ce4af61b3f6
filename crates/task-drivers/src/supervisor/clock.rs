//! The time of day, for the records; nothing is decided by it.

use std::time::UNIX_EPOCH;

use model::{Timestamp, duration_ns};

#[expect(
    clippy::disallowed_methods,
    reason = "a process of its own has no clock handed to it"
)]
pub(super) fn wall() -> Timestamp {
    let since_epoch = std::time::SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    Timestamp(duration_ns::nanos(since_epoch))
}
