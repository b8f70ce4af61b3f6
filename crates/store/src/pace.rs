//! The pace of commits under load: how long small work gathers after a commit.
//!
//! A transaction costs the store and each replica the same however little it writes. Writers of small
//! work (`gateway_core`'s groups, the plan-applier) wait before the next commit while more comes in side by
//! side; whether it does is theirs to say.

use std::time::Duration;

/// The shortest interval between two commits: a hundred transactions a second from each writer leave most
/// of the store to others.
pub const COMMIT_INTERVAL_MIN: Duration = Duration::from_millis(10);
/// The longest: well below the time that a user notices.
pub const COMMIT_INTERVAL_MAX: Duration = Duration::from_millis(20);

/// Returns the interval between the beginning of a commit that `took` so long and that of the next one:
/// twice that time, so that a slow store gets larger transactions, within the limits.
pub fn commit_interval(took: Duration) -> Duration {
    (took * 2).clamp(COMMIT_INTERVAL_MIN, COMMIT_INTERVAL_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_store_gets_longer_intervals_within_the_limits() {
        for (took_ms, expected_ms) in [(0, 10), (1, 10), (8, 16), (10, 20), (500, 20)] {
            let interval = commit_interval(Duration::from_millis(took_ms));
            assert_eq!(interval, Duration::from_millis(expected_ms), "{took_ms} ms");
        }
    }
}
