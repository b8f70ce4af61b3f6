//! The two clocks of a machine, passed to every step.
//!
//! Deadlines use the uptime, which cannot be set and continues while the agent is down; visible times
//! are wall time.

use std::time::Duration;

use model::{Timestamp, duration_ns};
use serde::{Deserialize, Serialize};

/// Nanoseconds since the machine booted, suspend included (Linux: `CLOCK_BOOTTIME`).
///
/// Comparable across restarts of the agent, not across boots.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Uptime(pub u64);

impl Uptime {
    /// Returns the uptime `duration` later, saturating.
    #[must_use]
    pub fn plus(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(duration_ns::nanos(duration)))
    }

    /// Returns the duration since `earlier`; zero if it is not earlier.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

/// Both clocks at one step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Now {
    pub uptime: Uptime,
    pub wall: Timestamp,
}

/// Writes `duration` in whole milliseconds, as in `15s`, `1m30s`, `250ms`.
pub(crate) fn written(duration: Duration) -> String {
    let millis = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    duration::show(Duration::from_millis(millis))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_random_delay_is_written_in_milliseconds() {
        for (duration, text) in [
            (Duration::ZERO, "0s"),
            (Duration::from_nanos(999_999), "0s"),
            (Duration::from_nanos(15_500_700_001), "15.5s"),
            (Duration::from_secs(90), "1m30s"),
        ] {
            assert_eq!(written(duration), text);
        }
    }
}
