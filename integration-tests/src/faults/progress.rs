//! Pauses of progress. Times are microseconds since the run began.

/// Returns the longest gap between events in the range from `from` to `to`. Gaps are cut at both ends
/// of the range.
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

/// Returns a percentile of sorted values by nearest rank.
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
            "an earlier gap counts from the start of the range"
        );
        assert_eq!(longest_gap(&times, 0, 60), 30, "nothing since 30");
        assert_eq!(longest_gap(&[], 10, 25), 15);
    }

    #[test]
    fn percentiles_are_measured_values() {
        let values: Vec<u64> = (1..=200).collect();
        assert_eq!(percentile(&values, 50), 100);
        assert_eq!(percentile(&values, 99), 198);
        assert_eq!(percentile(&values, 100), 200);
        assert_eq!(percentile(&[7], 99), 7);
        assert_eq!(percentile(&[], 50), 0);
    }
}
