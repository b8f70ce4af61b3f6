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
    /// Returns the uptime `span` later, saturating.
    #[must_use]
    pub fn plus(self, span: Duration) -> Self {
        Self(self.0.saturating_add(duration_ns::nanos(span)))
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

/// Formats `span` as in `15s`, `1m30s`, `250ms`, the way users write durations in job files.
pub(crate) fn written(span: Duration) -> String {
    let seconds = span.as_secs();
    let millis = span.subsec_millis();
    if seconds == 0 {
        return if millis == 0 {
            "0s".to_owned()
        } else {
            format!("{millis}ms")
        };
    }
    let (hours, minutes, rest) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    let mut text = String::new();
    if hours > 0 {
        text.push_str(&format!("{hours}h"));
    }
    if hours > 0 || minutes > 0 {
        text.push_str(&format!("{minutes}m"));
    }
    if millis > 0 {
        text.push_str(&format!("{rest}.{millis:03}s"));
    } else {
        text.push_str(&format!("{rest}s"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_written_as_users_write_them() {
        let cases = [
            (Duration::ZERO, "0s"),
            (Duration::from_millis(250), "250ms"),
            (Duration::from_secs(15), "15s"),
            (Duration::from_millis(15_500), "15.500s"),
            (Duration::from_secs(90), "1m30s"),
            (Duration::from_secs(1800), "30m0s"),
            (Duration::from_secs(86_400), "24h0m0s"),
        ];
        for (span, text) in cases {
            assert_eq!(written(span), text);
        }
    }
}
