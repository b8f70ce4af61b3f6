//! How good a node is for one more allocation of a group.

use model::ComparableResources;

/// The largest sum of the two powers below that a node can lose: 20 for an empty one, 2 for a full.
const FIT_RANGE: f64 = 18.0;

/// The mean of the scorers that had something to say. Source: Nomad's public behaviour.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Score {
    sum: f64,
    scorers: u32,
}

impl Score {
    /// Starts with what every node has: how full it would be.
    pub(crate) fn of_fit(available: ComparableResources, after: ComparableResources) -> Self {
        Self {
            sum: bin_packing(available, after),
            scorers: 1,
        }
    }

    /// Adds what one more scorer says.
    #[must_use]
    pub(crate) fn and(self, value: f64) -> Self {
        Self {
            sum: self.sum + value,
            scorers: self.scorers + 1,
        }
    }

    pub(crate) fn mean(self) -> f64 {
        self.sum / f64::from(self.scorers)
    }
}

/// Returns 0 for a node that stays empty and 1 for one whose cpu and memory are used up.
///
/// Source: the "best fit" score of Google's published work on datacenter packing (BestFit v3),
/// which Nomad uses: the fuller, the better, and evenly in both dimensions.
fn bin_packing(available: ComparableResources, after: ComparableResources) -> f64 {
    let free_cpu = free_share(available.cpu_mhz, after.cpu_mhz);
    let free_memory = free_share(available.memory_mib, after.memory_mib);
    let lost = 20.0 - (10_f64.powf(free_cpu) + 10_f64.powf(free_memory));
    lost.clamp(0.0, FIT_RANGE) / FIT_RANGE
}

#[expect(
    clippy::cast_precision_loss,
    reason = "amounts of a node are far below 2^52"
)]
fn free_share(available: u64, used: u64) -> f64 {
    if available == 0 {
        return 0.0;
    }
    1.0 - used as f64 / available as f64
}

/// Returns what is said of a node that already has `collisions` of the group's `count`: two on one
/// node fail together.
pub(crate) fn anti_affinity(collisions: u32, count: u32) -> f64 {
    -f64::from(collisions + 1) / f64::from(count.max(1))
}

/// What is said of a node on which the allocation to be replaced has failed.
pub(crate) const RESCHEDULE_PENALTY: f64 = -1.0;

/// Returns a mean score as thousandths, as allocations remember it; below 0 is 0.
pub(crate) fn per_mille(mean: f64) -> u32 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "clamped to 0..=1000"
    )]
    let per_mille = (mean * 1_000.0).round().clamp(0.0, 1_000.0) as u32;
    per_mille
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(cpu_percent: u64, memory_percent: u64) -> f64 {
        let available = ComparableResources {
            cpu_mhz: 100,
            memory_mib: 100,
            disk_mib: 1,
        };
        let after = ComparableResources {
            cpu_mhz: cpu_percent,
            memory_mib: memory_percent,
            disk_mib: 1,
        };
        Score::of_fit(available, after).mean()
    }

    fn close(left: f64, right: f64) -> bool {
        (left - right).abs() < 0.000_1
    }

    #[test]
    fn scenario_122_fuller_is_better() {
        for (percent, want) in [
            (0, 0.0),
            (25, 0.486_3),
            (50, 0.759_7),
            (75, 0.913_5),
            (100, 1.0),
        ] {
            assert!(
                close(at(percent, percent), want),
                "{percent} %: {}",
                at(percent, percent)
            );
        }
        assert!(close(at(100, 0), 0.5));
    }

    #[test]
    fn scenario_123_collisions_and_failures_count_against_a_node() {
        assert!(close(anti_affinity(2, 4), -0.75));
        let nothing = ComparableResources::default();
        let score = Score::of_fit(nothing, nothing)
            .and(-0.75)
            .and(RESCHEDULE_PENALTY);
        // A node without amounts fits nothing in particular: 1, and the mean of three.
        assert!(
            close(score.mean(), (1.0 - 0.75 - 1.0) / 3.0),
            "{}",
            score.mean()
        );
    }

    #[test]
    fn thousandths_stay_in_their_range() {
        assert_eq!(per_mille(-0.3), 0);
        assert_eq!(per_mille(0.759_7), 760);
        assert_eq!(per_mille(1.001), 1_000);
    }
}
