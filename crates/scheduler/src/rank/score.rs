//! Scores of a node for one more allocation of a group: the arithmetic of each scorer.
//!
//! Source: Nomad's public behaviour, except where a function says otherwise.

use std::f64::consts::LOG2_10;

use model::{ComparableResources, ScoreParts};

use model::Algorithm;

/// The range of the sum of the two powers below: 20 for an empty node, 2 for a full one.
const FIT_RANGE: f64 = 18.0;

/// Sums of spread boosts closer to 0 than this are 0: they are not exact.
pub(crate) const NOTHING: f64 = 1e-9;

/// The score of a node on which the predecessor failed.
pub(crate) const RESCHEDULE_PENALTY: f64 = -1.0;

/// Scores of a node by scorer. The total is the mean of those that count, or their sum if that is
/// negative.
///
/// In a negative mean, one more negative scorer may raise the result, and a group would pile up on
/// its own nodes; a sum never rises.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Parts {
    pub(crate) fit: f64,
    /// `None`: no other allocation of the group is on the node.
    pub(crate) anti_affinity: Option<f64>,
    pub(crate) is_penalised: bool,
    /// `None`: the group has no affinities.
    pub(crate) affinity: Option<f64>,
    /// 0 does not count.
    pub(crate) spread: f64,
    /// The affinity score of the devices; `None`: the group's requests have no affinities.
    pub(crate) devices: Option<f64>,
    /// `None`: no victims.
    pub(crate) preemption: Option<f64>,
}

impl Parts {
    /// Returns the sum of the scorers that depend on the node alone, and their number.
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

    /// Returns the total score.
    pub(crate) fn score(&self) -> f64 {
        let (sum, scorers) = self.base();
        if self.is_penalised {
            with_penalty(sum, scorers, self.spread)
        } else {
            with_spread(sum, scorers, self.spread)
        }
    }

    /// Returns the sum of the scorers apart from fit and penalty.
    pub(crate) fn preference(&self) -> f64 {
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

/// Returns the total of `scorers` with the sum `sum` and of the spread boost, unless that is 0.
/// Monotonic in `sum`.
pub(crate) fn with_spread(sum: f64, scorers: f64, spread: f64) -> f64 {
    let (sum, scorers) = if spread.abs() < NOTHING {
        (sum, scorers)
    } else {
        (sum + spread, scorers + 1.0)
    };
    if sum < 0.0 { sum } else { sum / scorers }
}

/// Returns the same for a node with the reschedule penalty.
pub(crate) fn with_penalty(sum: f64, scorers: f64, spread: f64) -> f64 {
    with_spread(sum + RESCHEDULE_PENALTY, scorers + 1.0, spread)
}

/// Returns the fit of a node with `after` on it, from 0 to 1: bin-packing prefers full nodes,
/// spreading empty ones.
///
/// Source: the "best fit" score of Google's published work on datacenter packing (BestFit v3),
/// which Nomad uses over cpu and memory: the fuller and the more evenly, the better. Here it is
/// over the two fullest of three dimensions: a disk fuller than cpu or memory replaces the emptier
/// of them, as it is exhausted first.
pub(crate) fn fit(
    algorithm: Algorithm,
    available: ComparableResources,
    after: ComparableResources,
) -> f64 {
    let free_cpu = free_share(available.cpu_mhz, after.cpu_mhz);
    let free_memory = free_share(available.memory_mib, after.memory_mib);
    let free_disk = match available.disk_mib {
        // The node has no disk to fill.
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

/// A cache of the last fit: neighbours in the table are often of one make and equally full.
#[derive(Debug, Default)]
pub(crate) struct FitCache {
    last: Option<(ComparableResources, ComparableResources, f64)>,
}

impl FitCache {
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

/// Returns the anti-affinity score of a node with `collisions` of the group's `count`: two on one
/// node fail together.
pub(crate) fn anti_affinity(collisions: u32, count: u32) -> Option<f64> {
    (collisions > 0).then(|| -f64::from(collisions + 1) / f64::from(count.max(1)))
}

/// Returns a score in thousandths, as metrics store it.
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
