//! Retry backoff.

use std::time::Duration;

use rand::{Rng, RngExt};

/// Jittered exponential back-off: each wait is drawn between half of a bound and the bound, and
/// the bound doubles up to a maximum. Pure: randomness is an argument, and nothing sleeps here.
#[derive(Clone, Debug)]
pub struct Backoff {
    initial: Duration,
    max: Duration,
    bound: Duration,
}

impl Backoff {
    /// First waits of 25 to 50 ms: longer than a blip, shorter than a person notices. Never more
    /// than 5 s: a service that comes back is found again within that.
    pub const DEFAULT: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(5));

    /// Makes a back-off whose first bound is `initial` and whose last is `max`.
    pub fn new(initial: Duration, max: Duration) -> Self {
        let initial = initial.min(max);
        Self {
            initial,
            max,
            bound: initial,
        }
    }

    /// Returns the next wait, at least half of the bound: two processes that fail together do not
    /// return together.
    pub fn next(&mut self, rng: &mut impl Rng) -> Duration {
        let bound = self.bound;
        self.bound = bound.saturating_mul(2).min(self.max);
        bound.mul_f64(rng.random_range(0.5..=1.0))
    }

    /// Starts again from the first bound, after a success.
    pub fn reset(&mut self) {
        self.bound = self.initial;
    }
}

impl Default for Backoff {
    fn default() -> Self {
        Self::new(Self::DEFAULT.0, Self::DEFAULT.1)
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand::rngs::StdRng;

    use super::*;

    #[test]
    fn waits_double_up_to_the_maximum_and_start_again() {
        let mut rng = StdRng::seed_from_u64(1);
        let mut backoff = Backoff::new(Duration::from_millis(100), Duration::from_millis(350));
        for bound_ms in [100, 200, 350, 350] {
            let wait = backoff.next(&mut rng);
            let bound = Duration::from_millis(bound_ms);
            assert!(wait >= bound / 2 && wait <= bound, "{wait:?} for {bound:?}");
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
}
