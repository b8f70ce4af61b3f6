//! Retry backoff: exponential delays with jitter, between half of a bound and the bound.
//!
//! Pure: randomness is an argument, and nothing sleeps here. [`Backoff`] counts its failures itself;
//! [`delay`] is the same rule for callers that count them.

use std::time::Duration;

use rand::{Rng, RngExt};

/// Delays of one loop: each is drawn between half of a bound and the bound, which doubles up to a
/// maximum.
#[derive(Clone, Debug)]
pub struct Backoff {
    first: Duration,
    longest: Duration,
    failures: u32,
}

impl Backoff {
    /// First delays of 25 to 50 ms: longer than a blip, shorter than a person notices. Never more
    /// than 5 s: a service that comes back is found again within that.
    pub const DEFAULT: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(5));

    /// Returns a backoff whose first bound is `first` and whose last is `longest`.
    pub fn new(first: Duration, longest: Duration) -> Self {
        Self {
            first,
            longest,
            failures: 0,
        }
    }

    /// Returns the next delay, at least half of the bound: two processes that fail together do not
    /// return together.
    pub fn next(&mut self, rng: &mut impl Rng) -> Duration {
        self.next_with(rng.random_range(0.0..=1.0))
    }

    /// Returns the next delay for a jitter, as [`delay`] has it.
    pub fn next_with(&mut self, jitter: f64) -> Duration {
        self.failures = self.failures.saturating_add(1);
        delay((self.first, self.longest), self.failures, jitter)
    }

    /// Starts again from the first bound, after a success.
    pub fn reset(&mut self) {
        self.failures = 0;
    }
}

impl Default for Backoff {
    fn default() -> Self {
        Self::new(Self::DEFAULT.0, Self::DEFAULT.1)
    }
}

/// Returns the delay after `failures` failures in a row, 1 or more: its bound doubles from the first to
/// the longest, and `jitter` (0 to 1) takes up to half of it off.
pub fn delay((first, longest): (Duration, Duration), failures: u32, jitter: f64) -> Duration {
    let doublings = failures.saturating_sub(1).min(30);
    let bound = first.saturating_mul(1 << doublings).min(longest);
    bound.mul_f64(1.0 - jitter.clamp(0.0, 1.0) / 2.0)
}

/// Returns [`delay`], or the delay that the server asked for if that is longer, up to the longest.
pub fn delay_or_asked(
    bounds: (Duration, Duration),
    failures: u32,
    asked: Option<Duration>,
    jitter: f64,
) -> Duration {
    let asked = asked.unwrap_or_default().min(bounds.1);
    delay(bounds, failures, jitter).max(asked)
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand::rngs::StdRng;

    use super::*;

    const BOUNDS: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(30));

    #[test]
    fn delays_double_up_to_the_longest_and_start_again() {
        let mut rng = StdRng::seed_from_u64(1);
        let mut backoff = Backoff::new(Duration::from_millis(100), Duration::from_millis(350));
        for bound_ms in [100, 200, 350, 350] {
            let delay = backoff.next(&mut rng);
            let bound = Duration::from_millis(bound_ms);
            assert!(
                delay >= bound / 2 && delay <= bound,
                "{delay:?} for {bound:?}"
            );
        }
        backoff.reset();
        assert!(backoff.next(&mut rng) <= Duration::from_millis(100));
    }

    #[test]
    fn two_processes_do_not_wait_equally_long() {
        let mut first = StdRng::seed_from_u64(1);
        let mut second = StdRng::seed_from_u64(2);
        assert_ne!(
            Backoff::default().next(&mut first),
            Backoff::default().next(&mut second)
        );
    }

    #[test]
    fn jitter_takes_up_to_half_of_a_delay_off() {
        let seconds = |failures, jitter| delay(BOUNDS, failures, jitter).as_secs_f64();
        for (failures, want) in [
            (0, 1.0),
            (1, 1.0),
            (2, 2.0),
            (5, 16.0),
            (6, 30.0),
            (u32::MAX, 30.0),
        ] {
            let (full, half) = (seconds(failures, 0.0), seconds(failures, 1.0));
            assert!((full - want).abs() < 1e-9, "{failures}: {full}");
            assert!((half - want / 2.0).abs() < 1e-9, "{failures}: {half}");
        }
    }

    #[test]
    fn a_delay_that_the_server_asked_for_is_kept_up_to_the_longest() {
        let asked = |seconds| delay_or_asked(BOUNDS, 1, Some(Duration::from_secs(seconds)), 0.0);
        assert_eq!(asked(0), BOUNDS.0);
        assert_eq!(asked(7), Duration::from_secs(7));
        assert_eq!(asked(3600), BOUNDS.1);
    }
}
