//! For how long nothing went on. Times are microseconds since the run began.

/// Returns the longest time between `from` and `to` in which nothing happened. What began before
/// `from` counts from there, and so does what goes on after `to`.
pub fn longest_gap(times: &[u64], from: u64, to: u64) -> u64 {
    let mut longest = 0;
    let mut last = from;
    for time in times
        .iter()
        .copied()
        .filter(|time| (from..=to).contains(time))
    {
        longest = longest.max(time - last);
        last = time;
    }
    longest.max(to.saturating_sub(last))
}

/// Returns the value that `percent` of the values are at most, of sorted ones: the nearest rank.
pub fn percentile(sorted: &[u64], percent: usize) -> u64 {
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    sorted.get(rank - 1).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_are_cut_at_both_ends() {
        let times = [5, 10, 30, 70];
        assert_eq!(longest_gap(&times, 0, 30), 20);
        assert_eq!(
            longest_gap(&times, 12, 30),
            18,
            "what began earlier counts from the fault on"
        );
        assert_eq!(longest_gap(&times, 0, 60), 30, "nothing since 30");
        assert_eq!(longest_gap(&[], 10, 25), 15);
    }

    #[test]
    fn percentiles_are_values_that_were_measured() {
        let values: Vec<u64> = (1..=200).collect();
        assert_eq!(percentile(&values, 50), 100);
        assert_eq!(percentile(&values, 99), 198);
        assert_eq!(percentile(&values, 100), 200);
        assert_eq!(percentile(&[7], 99), 7);
        assert_eq!(percentile(&[], 50), 0);
    }
}
