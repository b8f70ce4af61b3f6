//! Backoff between the attempts of a download.

use std::time::Duration;

use rand::{Rng, RngExt as _};

/// The first delay, and the longest: an outage that lasts is left to the task's restart policy.
const DELAYS: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(20));

/// Returns the delay after the failed attempt `attempt`, from 1.
pub(crate) fn delay(attempt: u32, rng: &mut impl Rng) -> Duration {
    backoff::delay(DELAYS, attempt, rng.random_range(0.0..=1.0))
}
