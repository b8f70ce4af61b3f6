//! What many seeds come to together.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

/// Sums over seeds; times in milliseconds of the world.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sums {
    pub seeds: u64,
    pub simulated_ms: u64,
    pub revisions: u64,
    pub requests: u64,
    pub acknowledged: u64,
    /// What was broken, and how often.
    pub faults: BTreeMap<String, u64>,
    /// From a leader's crash to the election of the next.
    pub elected_ms: Vec<u64>,
    /// From a leader's crash to the next one's first write.
    pub wrote_ms: Vec<u64>,
}

impl Sums {
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

impl fmt::Display for Sums {
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
        for (what, times) in times {
            let mut times = times.clone();
            times.sort_unstable();
            let [half, most, all] = [500, 990, 1_000].map(|permille| quantile(&times, permille));
            writeln!(
                f,
                "a leader crashed, {what}: {} times, p50 {half} ms, p99 {most} ms, at most {all} ms",
                times.len()
            )?;
        }
        Ok(())
    }
}

/// Returns what so many of a thousand are not above; 0 of none. `sorted` ascends.
fn quantile(sorted: &[u64], permille: usize) -> u64 {
    let rank = (sorted.len() * permille).div_ceil(1_000);
    sorted.get(rank.saturating_sub(1)).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_values_that_were_seen() {
        let times: Vec<u64> = (1..=200).collect();
        assert_eq!(quantile(&times, 500), 100);
        assert_eq!(quantile(&times, 990), 198);
        assert_eq!(quantile(&times, 1_000), 200);
        assert_eq!(quantile(&[7], 500), 7);
        assert_eq!(quantile(&[], 990), 0);
    }

    #[test]
    fn sums_add_up() {
        let one = Sums {
            seeds: 1,
            simulated_ms: 5,
            revisions: 2,
            requests: 3,
            acknowledged: 2,
            faults: [("a".to_owned(), 2)].into(),
            elected_ms: vec![4],
            wrote_ms: vec![6],
        };
        let mut sums = one.clone();
        sums.add(one);
        assert_eq!(sums.faults["a"], 4);
        assert_eq!((sums.seeds, sums.elected_ms), (2, vec![4, 4]));
    }
}
