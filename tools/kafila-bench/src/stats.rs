//! Percentiles and rates.

use std::time::Duration;

/// Returns the smallest value that `per_cent` of the values do not exceed; 0 without values.
pub(crate) fn percentile(values: &[u64], per_cent: usize) -> u64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    let rank = (sorted.len() * per_cent).div_ceil(100).max(1);
    sorted.get(rank - 1).copied().unwrap_or(0)
}

#[expect(clippy::cast_precision_loss, reason = "for people")]
pub(crate) fn per_second(count: u64, duration: Duration) -> f64 {
    count as f64 / duration.as_secs_f64().max(f64::EPSILON)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_is_the_nearest_rank() {
        let hundred: Vec<u64> = (1..=100).rev().collect();
        for (values, per_cent, expected) in [
            (&hundred[..], 50, 50),
            (&hundred[..], 99, 99),
            (&hundred[..], 100, 100),
            (&[7], 1, 7),
            (&[], 50, 0),
        ] {
            assert_eq!(percentile(values, per_cent), expected, "{per_cent}");
        }
    }
}
