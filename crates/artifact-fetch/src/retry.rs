//! Backoff between the attempts of a download.

use std::time::Duration;

use rand::{Rng, RngExt as _};

/// The first delay.
const FIRST: Duration = Duration::from_millis(500);
/// The longest delay: an outage that lasts is left to the task's restart policy.
const LAST: Duration = Duration::from_secs(20);

/// Returns the delay after the failed attempt `attempt`, from 1: it doubles, with jitter of a half.
pub(crate) fn delay(attempt: u32, rng: &mut impl Rng) -> Duration {
    let doubled = FIRST.saturating_mul(1 << attempt.saturating_sub(1).min(10));
    let longest = doubled.min(LAST);
    longest.mul_f64(rng.random_range(0.5..=1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_up_to_the_longest() {
        let mut rng = rand::rng();
        for (attempt, longest) in [(1, 500), (2, 1000), (5, 8000), (7, 20_000), (60, 20_000)] {
            let delay = delay(attempt, &mut rng);
            let longest = Duration::from_millis(longest);
            assert!(delay <= longest && delay >= longest / 2, "{attempt}: {delay:?}");
        }
    }
}
