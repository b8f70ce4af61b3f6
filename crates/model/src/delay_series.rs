//! Delay series of a reschedule policy: the delay after a given one, the maximum, the sum of all.
//!
//! Two crates share this arithmetic. `placement::reschedule` decides whether and when a failed allocation
//! is replaced; `jobspec` validates that the attempts of a policy fit into its interval.

use std::time::Duration;

use crate::job::{DelayFunction, ReschedulePolicy};

impl ReschedulePolicy {
    /// Returns the delay after the `last` one of a series and the one `before` it, not yet limited to
    /// `max_delay`. `None`: the series has no such delay yet.
    ///
    /// Source: Nomad's public behaviour. Fibonacci begins with the delay twice, as in 1, 1, 2, 3, 5.
    pub fn following_delay(&self, before: Option<Duration>, last: Option<Duration>) -> Duration {
        match (self.delay_function, before, last) {
            (DelayFunction::Exponential, _, Some(last)) => last.saturating_mul(2),
            (DelayFunction::Fibonacci, Some(before), Some(last)) => before.saturating_add(last),
            _ => self.delay,
        }
    }

    /// Tells whether `delay` exceeds `max_delay`, which limits growing delays unless it is zero.
    pub fn is_above_max(&self, delay: Duration) -> bool {
        self.delay_function != DelayFunction::Constant
            && !self.max_delay.is_zero()
            && delay > self.max_delay
    }

    /// Returns the sum of the delays before each of `attempts` in one series, in nanoseconds.
    pub fn total_delay_ns(&self) -> u128 {
        let (mut before, mut last, mut total) = (None, None, 0);
        // At most some 100 rounds: the delay doubles at least every other round, up to `max_delay` or
        // the largest duration; the equal delays from there on are one multiplication.
        for left in (1..=self.attempts).rev() {
            let mut delay = self.following_delay(before, last);
            if self.is_above_max(delay) {
                delay = self.max_delay;
            }
            if before == Some(delay) && last == Some(delay) {
                return total + delay.as_nanos() * u128::from(left);
            }
            total += delay.as_nanos();
            (before, last) = (last, Some(delay));
        }
        total
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_add_up_as_each_function_says() {
        let total = |delay_function, attempts| {
            let policy = ReschedulePolicy {
                attempts,
                interval: Duration::ZERO,
                delay: Duration::from_secs(10),
                delay_function,
                max_delay: Duration::from_secs(50),
                unlimited: false,
            };
            policy.total_delay_ns() / 1_000_000_000
        };
        assert_eq!(total(DelayFunction::Constant, 0), 0);
        assert_eq!(total(DelayFunction::Constant, 4), 40);
        assert_eq!(total(DelayFunction::Exponential, 4), 10 + 20 + 40 + 50);
        assert_eq!(
            total(DelayFunction::Fibonacci, 6),
            10 + 10 + 20 + 30 + 50 + 50
        );
        assert_eq!(
            total(DelayFunction::Exponential, u32::MAX),
            70 + 50 * u128::from(u32::MAX - 3)
        );
    }

    #[test]
    fn a_series_without_a_maximum_ends_at_the_largest_duration() {
        let policy = ReschedulePolicy {
            attempts: u32::MAX,
            interval: Duration::ZERO,
            delay: Duration::from_secs(5),
            delay_function: DelayFunction::Exponential,
            max_delay: Duration::ZERO,
            unlimited: false,
        };
        assert!(policy.total_delay_ns() > Duration::MAX.as_nanos() * u128::from(u32::MAX - 100));
    }
}
