//! What an eviction costs: the arithmetic of who is chosen before whom.
//!
//! Source: Nomad's public behaviour, but for what the functions say of themselves.

use model::ComparableResources;

/// How much lower than the job's the priority of a victim's job must be at least.
pub(crate) const PRIORITY_DELTA: u8 = 10;

/// What each victim costs beyond those of its group that may move at the same time.
const PENALTY: f64 = 50.0;

/// The weight of victims at which [`preemption_score`] is one half: the largest priority.
const WEIGHT_AT_HALF: f64 = 100.0;

/// How much of each amount is still asked for; below 0 when more is free than is needed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Need([f64; 3]);

impl Need {
    pub(crate) fn new(ask: ComparableResources) -> Self {
        Self(amounts(ask))
    }

    /// Takes off what a victim gives up.
    pub(crate) fn less(&mut self, freed: ComparableResources) {
        for (need, freed) in self.0.iter_mut().zip(amounts(freed)) {
            *need -= freed;
        }
    }

    /// Returns how far `held` is from what is needed, in shares of the need; amounts that are not
    /// needed do not count.
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

/// Returns what it costs to evict one more of a group of which `evicted` go already and of which
/// `max_parallel` may move at the same time (0: any number).
pub(crate) fn penalty(max_parallel: u32, evicted: u32) -> f64 {
    if max_parallel == 0 || evicted < max_parallel {
        return 0.0;
    }
    PENALTY * f64::from(evicted + 1 - max_parallel)
}

/// Returns from 1 down to 0 how good it is to evict victims of these priorities: the fewer and the
/// less important, the better.
///
/// The curve is ours. Nomad's, over the same weight of victims, is made for larger numbers: every node
/// scores 1 on it, and who is evicted does not matter. Here one victim more makes a difference that is
/// larger than a near-tie.
pub(crate) fn preemption_score(priorities: impl IntoIterator<Item = u8>) -> f64 {
    let (mut highest, mut sum) = (0_u8, 0.0);
    for priority in priorities {
        highest = highest.max(priority);
        sum += f64::from(priority);
    }
    let weight = f64::from(highest) + sum / f64::from(highest.max(1));
    WEIGHT_AT_HALF / (WEIGHT_AT_HALF + weight)
}
