//! Totals over many seeds: history, faults and failover times.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

/// Totals over seeds; times in simulated milliseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Totals {
    pub seeds: u64,
    pub simulated_ms: u64,
    pub revisions: u64,
    pub requests: u64,
    pub acknowledged: u64,
    /// Kind of fault → count.
    pub faults: BTreeMap<String, u64>,
    /// From a leader's crash to the election of the next.
    pub elected_ms: Vec<u64>,
    /// From a leader's crash to the next one's first write.
    pub wrote_ms: Vec<u64>,
}

impl Totals {
    pub fn add(&mut self, other: Self) {
        self.seeds += other.seeds;
        self.simulated_ms += other.simulated_ms;
        self.revisions += other.revisions;
        self.requests += other.requests;
        self.acknowledged += other.acknowledged;
        for (kind, count) in other.faults {
            *self.faults.entry(kind).or_default() += count;
        }
        self.elected_ms.extend(other.elected_ms);
        self.wrote_ms.extend(other.wrote_ms);
    }
}

impl fmt::Display for Totals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hours = self.simulated_ms / 3_600_000;
        let minutes = self.simulated_ms / 60_000 % 60;
        writeln!(
            f,
            "simulated: {hours} h {minutes} min, {} revisions, {} of {} requests acknowledged",
            self.revisions, self.acknowledged, self.requests
        )?;
        writeln!(f, "faults: {}", self.faults.values().sum::<u64>())?;
        for (kind, count) in &self.faults {
            writeln!(f, "  {count:>7}  {kind}")?;
        }
        let times = [
            ("until another was elected", &self.elected_ms),
            ("until it wrote", &self.wrote_ms),
        ];
        for (event, times) in times {
            let mut times = times.clone();
            times.sort_unstable();
            let [p50, p99, max] = [500, 990, 1_000].map(|permille| quantile(&times, permille));
            writeln!(
                f,
                "a leader crashed, {event}: {} times, p50 {p50} ms, p99 {p99} ms, max {max} ms",
                times.len()
            )?;
        }
        Ok(())
    }
}

/// Returns the quantile of ascending values; 0 without values.
fn quantile(sorted: &[u64], permille: usize) -> u64 {
    let rank = (sorted.len() * permille).div_ceil(1_000);
    sorted.get(rank.saturating_sub(1)).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_observed_values() {
        let times: Vec<u64> = (1..=200).collect();
        assert_eq!(quantile(&times, 500), 100);
        assert_eq!(quantile(&times, 990), 198);
        assert_eq!(quantile(&times, 1_000), 200);
        assert_eq!(quantile(&[7], 500), 7);
        assert_eq!(quantile(&[], 990), 0);
    }

    #[test]
    fn sums_add_up() {
        let one = Totals {
            seeds: 1,
            simulated_ms: 5,
            revisions: 2,
            requests: 3,
            acknowledged: 2,
            faults: [("a".to_owned(), 2)].into(),
            elected_ms: vec![4],
            wrote_ms: vec![6],
        };
        let mut totals = one.clone();
        totals.add(one);
        assert_eq!(totals.faults["a"], 4);
        assert_eq!((totals.seeds, totals.elected_ms), (2, vec![4, 4]));
    }
}
