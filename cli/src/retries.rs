//! Retries of commands that follow something while the gateway does not answer.

use std::time::Duration;

use service_kit::Backoff;

/// Consecutive failed requests before a command gives up. With the backoff (1 s doubling to 12 s) this
/// takes about 90 s, enough for a restart or failover of the gateway. Source: Nomad's monitor.
pub(crate) const MAX_RETRIES: u32 = 10;

/// First and longest delay after a failed request. Source: Nomad's monitor.
const DELAYS: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(12));

pub(crate) fn backoff() -> Backoff {
    Backoff::new(DELAYS.0, DELAYS.1)
}
