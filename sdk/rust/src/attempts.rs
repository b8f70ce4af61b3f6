//! The attempts of one call: timeouts, retries, failover. No I/O; time and chance are arguments.

use std::time::Duration;

use backoff::Backoff;
use tokio::time::Instant;

use crate::config::{Config, RetryPolicy};
use crate::error::{Error, Kind};
use crate::method::Repeat;

/// The next step after a failed attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    Again(Duration),
    GiveUp,
}

/// One call: when to try again, and until when.
#[derive(Debug)]
pub(crate) struct Attempts {
    policy: RetryPolicy,
    repeat: Repeat,
    deadline: Instant,
    attempt_timeout: Duration,
    gateways: usize,
    made: u32,
    /// Successive attempts that reached no gateway.
    unreached: usize,
    /// An earlier attempt may have taken effect.
    in_doubt: bool,
    backoff: Backoff,
}

impl Attempts {
    /// `wait`: the time for which the gateway may block, added to the timeouts.
    pub(crate) fn new(
        config: &Config,
        repeat: Repeat,
        timeout: Duration,
        wait: Duration,
        now: Instant,
    ) -> Self {
        Self {
            policy: config.retry,
            repeat,
            deadline: now + timeout + wait,
            attempt_timeout: config.attempt_timeout + wait,
            gateways: config.gateways.len(),
            made: 0,
            unreached: 0,
            in_doubt: false,
            backoff: config.retry.backoff(),
        }
    }

    /// Returns the time for the next attempt.
    pub(crate) fn timeout(&self, now: Instant) -> Duration {
        let left = self.deadline.saturating_duration_since(now);
        let left = left.max(Duration::from_millis(1));
        match self.repeat {
            // A second attempt is impossible, so the first one has all the time.
            Repeat::Once => left,
            Repeat::Safe => left.min(self.attempt_timeout),
        }
    }

    /// Decides on the step after the failed attempt.
    pub(crate) fn after(&mut self, error: &Error, now: Instant, chance: f64) -> Next {
        self.made += 1;
        let is_unreached = matches!(error.kind(), Kind::Unreachable { .. } | Kind::Tls(_));
        self.unreached = if is_unreached { self.unreached + 1 } else { 0 };
        self.in_doubt |= error.may_have_happened();
        if self.made >= self.policy.attempts || !self.is_repeatable(error) {
            return Next::GiveUp;
        }
        let mut delay = self.backoff.next_with(1.0 - chance);
        if let Some(advised) = error.retry_after() {
            // No client comes back earlier than advised, and not all at once.
            let advised = advised.min(self.policy.max_delay);
            delay = delay.max(advised + delay / 4);
        }
        if now + delay < self.deadline {
            Next::Again(delay)
        } else {
            Next::GiveUp
        }
    }

    fn is_repeatable(&self, error: &Error) -> bool {
        if matches!(error.kind(), Kind::Unreachable { .. }) {
            return self.policy.wait_for_gateway || self.in_doubt || self.unreached < self.gateways;
        }
        if matches!(error.kind(), Kind::Tls(_)) {
            // A certificate does not get better by waiting; another gateway may have a valid one.
            return self.unreached < self.gateways;
        }
        if error.is_overload() {
            return true;
        }
        self.repeat == Repeat::Safe && error.is_failover()
    }
}

#[cfg(test)]
mod tests;
