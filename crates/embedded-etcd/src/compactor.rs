//! Automatic compaction: its schedule and its revisions.

use std::{collections::VecDeque, time::Duration};

use crate::config::AutoCompaction;

/// Interval of checks of the number of revisions; etcd's number.
const REVISIONS_INTERVAL: Duration = Duration::from_secs(300);

/// The longest time between two compactions by age; etcd's number.
const AGE_INTERVAL_MAX: Duration = Duration::from_secs(3_600);

/// Samples of the revision taken in one interval; etcd's number.
const SAMPLES_PER_INTERVAL: u32 = 10;

/// Samples of the current revision, as needed by the policy.
///
/// Source: etcd's `v3compactor`.
#[derive(Debug)]
pub(crate) struct AutoCompactor {
    policy: AutoCompaction,
    next_sample: Duration,
    /// The revision at each of the last samples, oldest first; only for a policy by age.
    samples: VecDeque<i64>,
    last_compaction: Duration,
    /// True once the first compaction was made; it waits for the whole age, later ones for an
    /// interval.
    has_compacted: bool,
}

impl AutoCompactor {
    #[must_use]
    pub(crate) fn new(policy: AutoCompaction) -> Self {
        let next_sample = match policy {
            AutoCompaction::Revisions(_) => REVISIONS_INTERVAL,
            AutoCompaction::Age(_) => Duration::ZERO,
        };
        Self {
            policy,
            next_sample,
            samples: VecDeque::new(),
            last_compaction: Duration::ZERO,
            has_compacted: false,
        }
    }

    /// Returns the time of the next call of [`AutoCompactor::sample`].
    #[must_use]
    pub(crate) fn next_sample(&self) -> Duration {
        self.next_sample
    }

    /// Samples `revision`, which is current at `now`; returns the revision to compact at, if any.
    pub(crate) fn sample(&mut self, now: Duration, revision: i64) -> Option<i64> {
        if now < self.next_sample {
            return None;
        }
        match self.policy {
            AutoCompaction::Revisions(keep) => {
                self.next_sample = now + REVISIONS_INTERVAL;
                Some(revision - keep).filter(|target| *target > 0)
            }
            AutoCompaction::Age(age) => self.sample_for_age(now, revision, age),
        }
    }

    fn sample_for_age(&mut self, now: Duration, revision: i64, age: Duration) -> Option<i64> {
        let interval = age.min(AGE_INTERVAL_MAX);
        let step = (interval / SAMPLES_PER_INTERVAL).max(Duration::from_millis(1));
        self.next_sample = now + step;
        let wait = if self.has_compacted { interval } else { age };
        let oldest = self.samples.front().copied();
        let due = now - self.last_compaction >= wait;

        let kept = age.as_millis() / step.as_millis() + 1;
        self.samples.push_back(revision);
        while self.samples.len() as u128 > kept {
            self.samples.pop_front();
        }
        let target = oldest.filter(|_| due)?;
        self.last_compaction = now;
        self.has_compacted = true;
        Some(target)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secs(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn by_revisions_keeps_that_many_every_five_minutes() {
        let mut compactor = AutoCompactor::new(AutoCompaction::Revisions(100));
        assert_eq!(compactor.sample(secs(299), 1_000), None);
        assert_eq!(compactor.sample(secs(300), 1_000), Some(900));
        assert_eq!(compactor.sample(secs(301), 2_000), None);
        assert_eq!(compactor.sample(secs(600), 2_000), Some(1_900));
        assert_eq!(compactor.sample(secs(900), 100), None);
    }

    #[test]
    fn by_age_compacts_at_the_revision_of_at_least_one_age_ago() {
        let mut compactor = AutoCompactor::new(AutoCompaction::Age(secs(100)));
        let mut compactions = Vec::new();
        let mut now = Duration::ZERO;
        while now <= secs(400) {
            // One revision a second.
            let revision = i64::try_from(now.as_secs()).unwrap();
            if let Some(target) = compactor.sample(now, revision) {
                compactions.push((now.as_secs(), target));
            }
            now = compactor.next_sample();
        }
        // As etcd: the oldest sample is the one taken before the last wait.
        assert_eq!(compactions, [(100, 0), (200, 90), (300, 190), (400, 290)]);
    }
}
