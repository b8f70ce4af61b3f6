//! The pace of groups: how long the loop lets requests gather after a commit.

use std::time::Duration;

use tokio::time::Instant;

/// The shortest interval between two groups under load: a hundred transactions a second from each
/// gateway leave most of the store to plans.
const INTERVAL: Duration = Duration::from_millis(10);
/// The longest: well below the time that a user notices.
const INTERVAL_MAX: Duration = Duration::from_millis(20);
/// Groups of one in a row after which requests count as coming one after the other: then a wait would
/// only delay them.
const LONE_GROUPS: u32 = 4;

/// True while requests come in side by side, and so gain from a wait.
#[derive(Debug)]
pub(super) struct Pace {
    lone_groups: u32,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            lone_groups: LONE_GROUPS,
        }
    }
}

impl Pace {
    /// Returns the time of the next commit, after one of `size` requests that began at `began` and
    /// ended `now`: at once while requests come one after the other, else after a while that grows
    /// with the time that the store takes.
    pub(super) fn next_after(&mut self, size: usize, began: Instant, now: Instant) -> Instant {
        self.lone_groups = match size {
            0 | 1 => self.lone_groups.saturating_add(1),
            _ => 0,
        };
        if self.lone_groups >= LONE_GROUPS {
            return now;
        }
        let took = now.saturating_duration_since(began);
        began + (took * 2).clamp(INTERVAL, INTERVAL_MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lone_requests_do_not_wait_and_concurrent_ones_gather() {
        let mut pace = Pace::default();
        let began = Instant::now();
        let now = began + Duration::from_millis(1);
        assert_eq!(pace.next_after(1, began, now), now);
        assert_eq!(pace.next_after(2, began, now), began + INTERVAL);
        for _ in 1..LONE_GROUPS {
            assert_eq!(pace.next_after(1, began, now), began + INTERVAL);
        }
        assert_eq!(pace.next_after(1, began, now), now, "alone again");
    }

    #[test]
    fn a_slow_store_gets_larger_groups() {
        let mut pace = Pace::default();
        let began = Instant::now();
        let mut after = |took| pace.next_after(9, began, began + Duration::from_millis(took));
        assert_eq!(after(8), began + Duration::from_millis(16));
        let late = after(500);
        assert_eq!(late, began + INTERVAL_MAX, "already over, so at once");
    }
}
