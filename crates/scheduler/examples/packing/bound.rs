//! Lower bound: the minimum number of nodes for a demand, with any scheduler.
//!
//! Allocations that may only be in some zones have to fit into those zones' nodes: for every set of
//! zones, allocations that may be nowhere else need as many of their largest nodes as the sums of
//! cpu, memory and disk need, and a group that wants distinct hosts by as many as it has
//! allocations. Sets of zones that have none in common add up. Sums know nothing of pieces, so even
//! the best packing may need more.

use model::{ComparableResources, Job, Node};
use placement::Requirements;

use crate::workload::{SMALL, Sizes, Used, ZONES, ask, nodes, zone};

/// The number of sets of zones.
const SETS: usize = 1 << ZONES;
const DIMENSIONS: usize = 3;

/// The demand by possible zones.
#[derive(Clone, Debug, Default)]
pub(crate) struct Demand {
    /// Set of zones → demand that is possible only there.
    sums: [[u64; DIMENSIONS]; SETS],
    /// Set of zones → the maximum number of hosts that one group needs.
    hosts: [usize; SETS],
}

impl Demand {
    /// Shape: `examples` has a node of every zone, in their order.
    pub(crate) fn of<'a>(jobs: impl IntoIterator<Item = &'a Job>, examples: &[Node]) -> Self {
        let mut demand = Self::default();
        for job in jobs {
            let requirements = Requirements::new(job, &job.task_groups[0]);
            let admits = |node: &&Node| requirements.class_passes(node);
            let zones = examples.iter().filter(admits).map(zone);
            let set = zones.fold(0, |set, zone| set | 1 << zone);
            let count = job.task_groups[0].count as usize;
            let hosts = requirements.distinct_hosts.map_or(0, |_| count);
            let amounts = amounts(ask(job));
            // Everything that may only be in a part of the set may only be in the set.
            for larger in (1..SETS).filter(|larger| set & larger == set) {
                for (sum, amount) in demand.sums[larger].iter_mut().zip(amounts) {
                    *sum += amount;
                }
                demand.hosts[larger] = demand.hosts[larger].max(hosts);
            }
        }
        demand
    }
}

fn amounts(resources: ComparableResources) -> [u64; DIMENSIONS] {
    [resources.cpu_mhz, resources.memory_mib, resources.disk_mib]
}

/// The capacity of the largest nodes of every set of zones.
#[derive(Clone, Debug)]
pub(crate) struct Bound {
    /// Set of zones, dimension → the sum of the 1, 2, 3 … largest nodes.
    held: Vec<[Vec<u64>; DIMENSIONS]>,
}

impl Bound {
    pub(crate) fn new(nodes: &[Node]) -> Self {
        let held = (0..SETS).map(|set| {
            std::array::from_fn(|dimension| {
                let of_set = nodes.iter().filter(|node| set & 1 << zone(node) != 0);
                let mut sizes: Vec<_> = of_set
                    .map(|node| amounts(node.available())[dimension])
                    .collect();
                sizes.sort_unstable_by(|one, other| other.cmp(one));
                let held = sizes.iter().scan(0, |sum, size| {
                    *sum += size;
                    Some(*sum)
                });
                held.collect()
            })
        });
        Self {
            held: held.collect(),
        }
    }

    /// Returns the minimum number of nodes for `demand`, and their total size.
    pub(crate) fn used(&self, demand: &Demand) -> Used {
        Used {
            nodes: least(|set| {
                let sums = self.held[set].iter().zip(demand.sums[set]);
                let needs = sums.map(|(held, sum)| match sum {
                    0 => 0,
                    sum => held.partition_point(|held| *held < sum) + 1,
                });
                needs.fold(demand.hosts[set], usize::max)
            }),
            size: least(|set| {
                let sums = demand.sums[set].iter().zip(amounts(SMALL));
                let needs = sums.map(|(sum, small)| sum.div_ceil(small));
                let most = needs.max().unwrap_or(0);
                usize::try_from(most)
                    .expect("a number of nodes")
                    .max(demand.hosts[set])
            }),
        }
    }

    /// Tells whether all nodes together have the sums of `demand`.
    fn may_hold(&self, demand: &Demand) -> bool {
        (1..SETS).all(|set| {
            let mut sums = self.held[set].iter().zip(demand.sums[set]);
            let count = self.held[set][0].len();
            demand.hosts[set] <= count
                && sums.all(|(held, sum)| sum <= held.last().copied().unwrap_or(0))
        })
    }
}

/// Returns the need of all zones together, when `need` is the need of a set of zones by itself.
fn least(need: impl Fn(usize) -> usize) -> usize {
    let mut bounds = [0; SETS];
    for set in 1..SETS {
        bounds[set] = need(set);
        for part in (1..set).filter(|part| set & part == *part) {
            bounds[set] = bounds[set].max(bounds[part] + bounds[set & !part]);
        }
    }
    bounds[SETS - 1]
}

/// Returns the minimum number of the cluster's nodes, in their order, for `demand`.
pub(crate) fn nodes_needed(sizes: Sizes, demand: &Demand, most: usize) -> usize {
    let mut needed = 1;
    while needed < most && !Bound::new(&nodes(sizes, needed)).may_hold(demand) {
        needed += 1;
    }
    needed
}
