//! Retry backoff for calls to etcd.

use std::time::Duration;

use rand::RngExt as _;

/// The first wait is at most 50 ms, a short pause of a healthy etcd; the longest is 2 s, so that a
/// service is back within seconds after a long outage of etcd.
const FIRST_MS: u64 = 50;
const LONGEST_MS: u64 = 2_000;

/// Exponential backoff with jitter.
#[derive(Debug, Default)]
pub(crate) struct Retry {
    failures: u32,
}

impl Retry {
    pub(crate) fn reset(&mut self) {
        self.failures = 0;
    }

    /// Returns the next wait: between half of a bound and the bound, which doubles.
    pub(crate) fn next_wait(&mut self) -> Duration {
        let bound = FIRST_MS
            .saturating_mul(1 << self.failures.min(10))
            .min(LONGEST_MS);
        self.failures = self.failures.saturating_add(1);
        Duration::from_millis(rand::rng().random_range(bound / 2..=bound))
    }

    pub(crate) async fn wait(&mut self) {
        tokio::time::sleep(self.next_wait()).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_to_the_longest_and_start_again() {
        let mut retry = Retry::default();
        assert!(retry.next_wait() <= Duration::from_millis(FIRST_MS));
        for _ in 0..20 {
            assert!(retry.next_wait() <= Duration::from_millis(LONGEST_MS));
        }
        assert!(retry.next_wait() >= Duration::from_millis(LONGEST_MS / 2));
        retry.reset();
        assert!(retry.next_wait() <= Duration::from_millis(FIRST_MS));
    }
}
