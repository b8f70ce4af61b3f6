//! Cost of evictions: the arithmetic that orders candidates.
//!
//! Source: Nomad's public behaviour, except where a function says otherwise.

use model::ComparableResources;

/// The minimum difference between the priorities of the preempting job and of a victim's job.
pub(crate) const PRIORITY_DELTA: u8 = 10;

/// The cost of each victim beyond `max_parallel` of its group.
const PENALTY: f64 = 50.0;

/// The weight of victims at which [`preemption_score`] is one half: the largest priority.
const WEIGHT_AT_HALF: f64 = 100.0;

/// The amounts that are still missing; negative where more is free than needed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Need([f64; 3]);

impl Need {
    pub(crate) fn new(ask: ComparableResources) -> Self {
        Self(amounts(ask))
    }

    /// Subtracts the resources that a victim frees.
    pub(crate) fn less(&mut self, freed: ComparableResources) {
        for (need, freed) in self.0.iter_mut().zip(amounts(freed)) {
            *need -= freed;
        }
    }

    /// Returns the distance between `held` and the missing amounts, in shares of these; amounts that are
    /// not missing do not count.
    pub(crate) fn distance(&self, held: ComparableResources) -> f64 {
        let pairs = self.0.iter().zip(amounts(held));
        let squares = pairs
            .filter(|(need, _)| **need > 0.0)
            .map(|(need, held)| ((need - held) / need).powi(2));
        squares.sum::<f64>().sqrt()
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "amounts of a node are far below 2^52"
)]
fn amounts(resources: ComparableResources) -> [f64; 3] {
    [
        resources.memory_mib as f64,
        resources.cpu_mhz as f64,
        resources.disk_mib as f64,
    ]
}

/// Returns the penalty for one more victim of a group with `evicted` victims already, of which
/// `max_parallel` may move at the same time (0: any number).
pub(crate) fn penalty(max_parallel: u32, evicted: u32) -> f64 {
    if max_parallel == 0 || evicted < max_parallel {
        return 0.0;
    }
    PENALTY * f64::from(evicted + 1 - max_parallel)
}

/// Returns the preemption score of victims with these priorities, from 1 down to 0: fewer victims and
/// lower priorities score better.
///
/// The curve is ours. Nomad's, over the same weight of victims, is made for larger numbers: every node
/// scores 1 on it, whatever its victims. Here an additional victim makes a difference larger than a
/// near-tie.
pub(crate) fn preemption_score(priorities: impl IntoIterator<Item = u8>) -> f64 {
    let (mut highest, mut sum) = (0_u8, 0.0);
    for priority in priorities {
        highest = highest.max(priority);
        sum += f64::from(priority);
    }
    let weight = f64::from(highest) + sum / f64::from(highest.max(1));
    WEIGHT_AT_HALF / (WEIGHT_AT_HALF + weight)
}
