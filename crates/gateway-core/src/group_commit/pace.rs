//! The pace of groups: whether the loop lets requests gather after a commit. How long: `store::pace`.

use store::pace::commit_interval;
use tokio::time::Instant;

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
        began + commit_interval(took)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use store::pace::COMMIT_INTERVAL_MIN as INTERVAL;

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
}
