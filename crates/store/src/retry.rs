//! Retry backoff for calls to etcd, and for decisions after conflicts.

use std::time::Duration;

use backoff::Backoff;

/// The first wait is at most 50 ms, a short pause of a healthy etcd; the longest is 2 s, so that a
/// service is back within seconds after a long outage of etcd.
const CALL: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(2));

/// The first wait is about the time of one commit, which is what the other writer needs. The longest
/// keeps the waits of eight attempts together under half a second, well within any request's timeout.
pub(crate) const CONFLICT: (Duration, Duration) =
    (Duration::from_millis(5), Duration::from_millis(100));

/// Backoff of one loop.
#[derive(Debug)]
pub(crate) struct Retry(Backoff);

impl Default for Retry {
    fn default() -> Self {
        Self(Backoff::new(CALL.0, CALL.1))
    }
}

impl Retry {
    /// Returns the backoff between decisions that conflict with other writes.
    pub(crate) fn after_conflicts() -> Self {
        Self(Backoff::new(CONFLICT.0, CONFLICT.1))
    }

    pub(crate) fn reset(&mut self) {
        self.0.reset();
    }

    pub(crate) fn next_wait(&mut self) -> Duration {
        self.0.next(&mut rand::rng())
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
        assert!(retry.next_wait() <= CALL.0);
        for _ in 0..20 {
            assert!(retry.next_wait() <= CALL.1);
        }
        assert!(retry.next_wait() >= CALL.1 / 2);
        retry.reset();
        assert!(retry.next_wait() <= CALL.0);
    }
}
