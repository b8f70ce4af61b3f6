//! Deadline of a held lock by the holder's own clock, and the times of its renewals.
//!
//! Pure. A request counts from before it was sent, so the holder's deadline is never later than the end of
//! its lease in etcd.

use std::time::Duration;

use tokio::time::Instant;

/// Renewals within the TTL: two may fail.
const RENEWALS: u32 = 3;
/// Retries of a failed renewal within the TTL.
const RETRIES: u32 = 15;

/// Returns the time after a request in which the command may run. It has ended before the lock's delay is over,
/// by SIGKILL after `grace` if it must be: a shorter delay leaves it less than the TTL.
pub(super) fn command_time(ttl: Duration, delay: Duration, grace: Duration) -> Duration {
    ttl.saturating_sub(grace.saturating_sub(delay))
}

#[derive(Clone, Copy, Debug)]
pub(super) struct LockDeadline {
    ttl: Duration,
    deadline: Instant,
    next: Instant,
}

impl LockDeadline {
    /// A lock whose request was `sent`.
    pub(super) fn new(ttl: Duration, sent: Instant) -> Self {
        Self {
            ttl,
            deadline: sent + ttl,
            next: sent + ttl / RENEWALS,
        }
    }

    /// Records a renewal whose request was `sent`.
    pub(super) fn renewed(&mut self, sent: Instant) {
        *self = Self::new(self.ttl, sent);
    }

    /// Records a failed renewal.
    pub(super) fn failed(&mut self, now: Instant) {
        self.next = (now + self.ttl / RETRIES).min(self.deadline);
    }

    pub(super) fn is_over(&self, now: Instant) -> bool {
        now >= self.deadline
    }

    /// When the command has to end unless the lock is renewed before.
    pub(super) fn time(&self) -> Instant {
        self.deadline
    }

    /// When the next renewal is due.
    pub(super) fn next_renewal(&self) -> Instant {
        self.next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_has_ended_before_the_delay_is_over() {
        let seconds = Duration::from_secs;
        for (ttl, delay, expected) in [
            (15, 15, 15),
            (15, 5, 15),
            (15, 2, 12),
            (15, 0, 10),
            (3, 0, 0),
        ] {
            let found = command_time(seconds(ttl), seconds(delay), seconds(5));
            assert_eq!(found, seconds(expected), "{ttl} {delay}");
        }
    }

    #[test]
    fn a_lock_ends_its_ttl_after_the_last_renewal_was_sent() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut deadline = LockDeadline::new(Duration::from_secs(15), start);
        assert_eq!((deadline.next_renewal(), deadline.time()), (at(5), at(15)));
        deadline.renewed(at(5));
        assert_eq!((deadline.next_renewal(), deadline.time()), (at(10), at(20)));
        deadline.failed(at(11));
        assert_eq!((deadline.next_renewal(), deadline.time()), (at(12), at(20)));
        assert!(!deadline.is_over(at(19)));
        deadline.failed(at(20));
        assert_eq!(
            deadline.next_renewal(),
            at(20),
            "a retry is not later than the end"
        );
        assert!(deadline.is_over(at(20)));
    }
}
