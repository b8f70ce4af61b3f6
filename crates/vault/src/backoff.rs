//! Delay before a failed request is repeated.

use std::time::Duration;

/// The first delay.
const FIRST: Duration = Duration::from_secs(1);

/// The delay after `failures` failures in a row, 1 or more: it doubles from a second up to `longest`, and
/// `jitter` (0 to 1) takes up to half of it off, so that the tasks of a node do not come back at once. A
/// delay that the server asked for is kept, up to `longest`.
pub fn delay(failures: u32, longest: Duration, asked: Option<Duration>, jitter: f64) -> Duration {
    let doublings = failures.saturating_sub(1).min(16);
    let full = FIRST.saturating_mul(1 << doublings).min(longest);
    let delay = full.mul_f64(1.0 - jitter.clamp(0.0, 1.0) / 2.0);
    delay.max(asked.unwrap_or_default().min(longest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_up_to_the_longest() {
        let longest = Duration::from_secs(30);
        let seconds = |failures, jitter| delay(failures, longest, None, jitter).as_secs_f64();
        for (failures, want) in [(1, 1.0), (2, 2.0), (5, 16.0), (6, 30.0), (u32::MAX, 30.0)] {
            assert!((seconds(failures, 0.0) - want).abs() < 1e-9, "{failures}");
            assert!((seconds(failures, 1.0) - want / 2.0).abs() < 1e-9, "{failures}");
        }
        let asked = |seconds| delay(1, longest, Some(Duration::from_secs(seconds)), 0.0);
        assert_eq!(asked(7), Duration::from_secs(7));
        assert_eq!(asked(3600), longest);
    }
}
