//! How good a node is for one more allocation of a group: the arithmetic of each scorer.
//!
//! Source: Nomad's public behaviour, but for what the functions say of themselves.

use std::f64::consts::LOG2_10;

use model::{ComparableResources, ScoreParts};

use model::Algorithm;

/// The largest sum of the two powers below that a node can lose: 20 for an empty one, 2 for a full.
const FIT_RANGE: f64 = 18.0;

/// Totals of spreads nearer to 0 than this are 0: sums of shares are not exact.
pub(crate) const NOTHING: f64 = 1e-9;

/// What is said of a node on which the allocation to be replaced has failed.
pub(crate) const RESCHEDULE_PENALTY: f64 = -1.0;

/// What each scorer says of a node; a score is the mean of those that count, or their sum where that
/// is less than nothing.
///
/// Of a mean below nothing, one thing more that speaks against a node may make a better one, and a
/// group would pile up where it is already; of a sum it never does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Parts {
    pub(crate) fit: f64,
    /// `None`: no other of the group is there.
    pub(crate) anti_affinity: Option<f64>,
    pub(crate) is_penalised: bool,
    /// `None`: the group has none.
    pub(crate) affinity: Option<f64>,
    /// 0 does not count.
    pub(crate) spread: f64,
    /// How well the node's devices suit; `None`: the group's requests have no affinities.
    pub(crate) devices: Option<f64>,
    /// `None`: nobody has to make way.
    pub(crate) preemption: Option<f64>,
}

impl Parts {
    /// Returns the sum of what depends on the node alone, and how many say so.
    pub(crate) fn base(&self) -> (f64, f64) {
        let mut sum = self.fit;
        let mut scorers = 1.0;
        let parts = [
            self.anti_affinity,
            self.affinity,
            self.devices,
            self.preemption,
        ];
        for part in parts.into_iter().flatten() {
            sum += part;
            scorers += 1.0;
        }
        (sum, scorers)
    }

    /// Returns the score.
    pub(crate) fn score(&self) -> f64 {
        let (sum, scorers) = self.base();
        if self.is_penalised {
            with_penalty(sum, scorers, self.spread)
        } else {
            with_spread(sum, scorers, self.spread)
        }
    }

    /// Returns what is said of the node apart from how full it is and what has failed on it.
    pub(crate) fn liking(&self) -> f64 {
        self.anti_affinity.unwrap_or(0.0) + self.affinity.unwrap_or(0.0) + self.spread
    }

    pub(crate) fn in_thousandths(&self) -> ScoreParts {
        ScoreParts {
            fit: thousandths(self.fit),
            anti_affinity: self.anti_affinity.map(thousandths),
            reschedule_penalty: self.is_penalised.then(|| thousandths(RESCHEDULE_PENALTY)),
            affinity: self.affinity.map(thousandths),
            spread: (self.spread.abs() >= NOTHING).then(|| thousandths(self.spread)),
            devices: self.devices.map(thousandths),
            preemption: self.preemption.map(thousandths),
        }
    }
}

/// Returns the score of `scorers` that sum up to `sum` and of what the spreads say, unless it is 0.
/// It grows with the sum.
pub(crate) fn with_spread(sum: f64, scorers: f64, spread: f64) -> f64 {
    let (sum, scorers) = if spread.abs() < NOTHING {
        (sum, scorers)
    } else {
        (sum + spread, scorers + 1.0)
    };
    if sum < 0.0 { sum } else { sum / scorers }
}

/// Returns the same for a node on which a predecessor has failed.
pub(crate) fn with_penalty(sum: f64, scorers: f64, spread: f64) -> f64 {
    with_spread(sum + RESCHEDULE_PENALTY, scorers + 1.0, spread)
}

/// Returns how well a node is used with `after` on it, from 0 to 1: best packed when cpu and memory
/// are used up, best spread when it stays empty.
///
/// Source: the "best fit" score of Google's published work on datacenter packing (BestFit v3),
/// which Nomad uses: the fuller, the better, and evenly in both dimensions. Here the two are the
/// fullest of three: a disk that is fuller than cpu or memory takes the place of the emptier of them,
/// as it is what the node will be out of first.
pub(crate) fn fit(
    algorithm: Algorithm,
    available: ComparableResources,
    after: ComparableResources,
) -> f64 {
    let free_cpu = free_share(available.cpu_mhz, after.cpu_mhz);
    let free_memory = free_share(available.memory_mib, after.memory_mib);
    let free_disk = match available.disk_mib {
        // It has none to fill.
        0 => f64::INFINITY,
        disk_mib => free_share(disk_mib, after.disk_mib),
    };
    let (fuller, emptier) = (free_cpu.min(free_memory), free_cpu.max(free_memory));
    let powers = power_of_ten(fuller) + power_of_ten(emptier.min(free_disk));
    let score = match algorithm {
        Algorithm::Binpack => 20.0 - powers,
        Algorithm::Spread => powers - 2.0,
    };
    score.clamp(0.0, FIT_RANGE) / FIT_RANGE
}

/// Scores nodes one after the other. Neighbours are often of one make and equally full, and what is
/// the same is not worked out again.
#[derive(Debug, Default)]
pub(crate) struct SameFit {
    last: Option<(ComparableResources, ComparableResources, f64)>,
}

impl SameFit {
    /// As [`fit`], for one algorithm.
    pub(crate) fn of(
        &mut self,
        algorithm: Algorithm,
        available: ComparableResources,
        after: ComparableResources,
    ) -> f64 {
        match self.last {
            Some((same, full, score)) if same == available && full == after => score,
            _ => {
                let score = fit(algorithm, available, after);
                self.last = Some((available, after, score));
                score
            }
        }
    }
}

fn power_of_ten(exponent: f64) -> f64 {
    (exponent * LOG2_10).exp2()
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
pub(crate) fn anti_affinity(collisions: u32, count: u32) -> Option<f64> {
    (collisions > 0).then(|| -f64::from(collisions + 1) / f64::from(count.max(1)))
}

/// Returns a score in thousandths, as metrics remember it.
pub(crate) fn thousandths(score: f64) -> i32 {
    #[expect(clippy::cast_possible_truncation, reason = "clamped")]
    let thousandths = (score * 1_000.0).round().clamp(-1e9, 1e9) as i32;
    thousandths
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(algorithm: Algorithm, cpu_percent: u64, memory_percent: u64) -> f64 {
        let available = ComparableResources {
            cpu_mhz: 100,
            memory_mib: 100,
            disk_mib: 100,
        };
        let after = ComparableResources {
            cpu_mhz: cpu_percent,
            memory_mib: memory_percent,
            disk_mib: 0,
        };
        fit(algorithm, available, after)
    }

    #[test]
    fn a_disk_that_is_fuller_than_cpu_or_memory_takes_the_place_of_the_emptier() {
        let of_disk = |size: u64, disk_mib: u64, cpu_mhz: u64, memory_mib: u64| {
            let available = ComparableResources {
                cpu_mhz: 100,
                memory_mib: 100,
                disk_mib: size,
            };
            let after = ComparableResources {
                cpu_mhz,
                memory_mib,
                disk_mib,
            };
            [Algorithm::Binpack, Algorithm::Spread]
                .map(|algorithm| fit(algorithm, available, after))
        };
        let of_two = |cpu, memory| {
            [Algorithm::Binpack, Algorithm::Spread].map(|algorithm| at(algorithm, cpu, memory))
        };
        // As ever, while it is the emptiest of the three, or there is none.
        for disk_mib in [0, 10, 20] {
            assert_eq!(of_disk(100, disk_mib, 50, 20), of_two(50, 20));
            assert_eq!(of_disk(100, disk_mib, 20, 50), of_two(50, 20));
        }
        assert_eq!(of_disk(0, 0, 50, 20), of_two(50, 20));
        assert_eq!(of_disk(100, 90, 50, 20), of_two(90, 50));
        assert_eq!(of_disk(100, 30, 20, 50), of_two(30, 50));
        // Nearly full of data and otherwise empty: packed before an empty node, spread after it.
        let ([packed, spread], [empty_packed, empty_spread]) =
            (of_disk(100, 95, 1, 1), of_disk(100, 1, 1, 1));
        assert!(packed > empty_packed + 0.4 && spread < empty_spread - 0.4);
    }

    fn close(left: f64, right: f64) -> bool {
        (left - right).abs() < 0.000_1
    }

    #[test]
    fn scenario_122_fuller_is_better_unless_load_is_to_be_spread() {
        for (percent, want) in [
            (0, 0.0),
            (25, 0.486_3),
            (50, 0.759_7),
            (75, 0.913_5),
            (100, 1.0),
        ] {
            let packed = at(Algorithm::Binpack, percent, percent);
            assert!(close(packed, want), "{percent} %: {packed}");
            let spread = at(Algorithm::Spread, percent, percent);
            assert!(close(spread, 1.0 - want), "{percent} %: {spread}");
        }
        for algorithm in [Algorithm::Binpack, Algorithm::Spread] {
            assert!(close(at(algorithm, 100, 0), 0.5), "{algorithm:?}");
        }
        // More than the node has, as with victims still there, is no better than full.
        assert!(close(at(Algorithm::Binpack, 150, 150), 1.0));
        assert!(close(at(Algorithm::Spread, 150, 150), 0.0));
    }

    #[test]
    fn scenario_123_collisions_and_failures_count_against_a_node() {
        assert!(close(anti_affinity(2, 4).unwrap(), -0.75));
        assert_eq!(anti_affinity(0, 4), None);
        let parts = Parts {
            fit: 0.9,
            anti_affinity: Some(-0.75),
            is_penalised: true,
            affinity: None,
            spread: 0.0,
            devices: None,
            preemption: None,
        };
        let liked = Parts {
            anti_affinity: Some(-0.25),
            is_penalised: false,
            ..parts
        };
        assert!(close(liked.score(), (0.9 - 0.25) / 2.0));
        // Below nothing it is the sum.
        assert!(close(parts.score(), 0.9 - 0.75 - 1.0));
        let hopeless = Parts {
            spread: -11.5,
            ..parts
        };
        assert!(close(hopeless.score(), 0.9 - 11.5 - 0.75 - 1.0));
    }

    #[test]
    fn a_penalty_makes_every_score_worse() {
        for spread in [-11.5, -1.0, -0.3, 0.0, 0.2, 1.0] {
            for affinity in [None, Some(-1.0), Some(-0.1), Some(0.0), Some(1.0)] {
                for fit in [0.0, 0.02, 0.5, 1.0] {
                    let free = Parts {
                        fit,
                        anti_affinity: None,
                        is_penalised: false,
                        affinity,
                        spread,
                        devices: None,
                        preemption: None,
                    };
                    let crowded = Parts {
                        anti_affinity: anti_affinity(1, 50),
                        ..free
                    };
                    let failed = |parts| Parts {
                        is_penalised: true,
                        ..parts
                    };
                    let (free, crowded) = ([free, failed(free)], [crowded, failed(crowded)]);
                    let scores = [free, crowded].map(|parts| parts.map(|parts| parts.score()));
                    let [[free, free_failed], [crowded, crowded_failed]] = scores;
                    assert!(crowded < free && crowded_failed < free_failed, "{scores:?}");
                    assert!(free_failed < free && crowded_failed < crowded, "{scores:?}");
                }
            }
        }
    }

    #[test]
    fn scenario_150_an_affinity_counts_even_where_it_says_nothing() {
        let parts = |affinity| Parts {
            fit: 0.9,
            anti_affinity: None,
            is_penalised: false,
            affinity,
            spread: 0.0,
            devices: None,
            preemption: None,
        };
        assert!(close(parts(None).score(), 0.9));
        assert!(close(parts(Some(1.0)).score(), 0.95));
        assert!(close(parts(Some(0.0)).score(), 0.45));
        assert!(close(parts(Some(0.5)).score(), 0.7));
    }

    #[test]
    fn thousandths_are_rounded() {
        assert_eq!(thousandths(0.759_7), 760);
        assert_eq!(thousandths(-11.5), -11_500);
    }
}
