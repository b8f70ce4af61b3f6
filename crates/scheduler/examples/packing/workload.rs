//! Synthetic clusters and jobs, deterministic by seed.

#![allow(dead_code, reason = "the examples each use a part of it")]

use model::{ComparableResources, Constraint, Job, JobType, Node, Operator};
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use test_kit::builders;

/// The number of zones; nodes are in them in turn.
pub(crate) const ZONES: usize = 4;
const ZONE_NAMES: [&str; ZONES] = ["a", "b", "c", "d"];

/// The resources of the smallest nodes.
pub(crate) const SMALL: ComparableResources = ComparableResources {
    cpu_mhz: 16_000,
    memory_mib: 32_768,
    disk_mib: 500_000,
};

/// The sizes of a cluster's nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sizes {
    /// 32,000 MHz and 64 GiB.
    Equal,
    /// A quarter is half as large, a quarter twice.
    Mixed,
}

impl Sizes {
    pub(crate) const ALL: [Self; 2] = [Self::Equal, Self::Mixed];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Equal => "equal nodes",
            Self::Mixed => "mixed nodes",
        }
    }
}

/// Returns the first `count` nodes of the cluster: every zone has the same shares of sizes.
pub(crate) fn nodes(sizes: Sizes, count: usize) -> Vec<Node> {
    (0..count).map(|number| node(sizes, number)).collect()
}

fn node(sizes: Sizes, number: usize) -> Node {
    let mut node = builders::node(number as u128 + 1);
    let size: u64 = match (sizes, number / ZONES % 4) {
        (Sizes::Mixed, 0) => 1,
        (Sizes::Mixed, 2) => 4,
        _ => 2,
    };
    node.resources = ComparableResources {
        cpu_mhz: SMALL.cpu_mhz * size,
        memory_mib: SMALL.memory_mib * size,
        disk_mib: SMALL.disk_mib * size,
    };
    let zone = number % ZONES;
    node.meta.insert("zone".into(), ZONE_NAMES[zone].into());
    let kernel = if zone < ZONES / 2 { "5.15.0" } else { "6.8.0" };
    node.attributes
        .insert("kernel.version".into(), kernel.into());
    node.computed_class = placement::computed_class(&node);
    node
}

/// Returns how large a node is, a small one being 1.
pub(crate) fn size(node: &Node) -> usize {
    usize::try_from(node.resources.cpu_mhz / SMALL.cpu_mhz).expect("a small number")
}

/// Nodes in use.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Used {
    pub(crate) nodes: usize,
    /// Their sizes, a small node being 1.
    pub(crate) size: usize,
}

impl Used {
    pub(crate) fn count<'a>(nodes: impl Iterator<Item = &'a Node>) -> Self {
        nodes.fold(Self::default(), |sum, node| Self {
            nodes: sum.nodes + 1,
            size: sum.size + size(node),
        })
    }

    /// Returns how many nodes of the middle size are as large.
    pub(crate) fn middle_nodes(self) -> usize {
        self.size.div_ceil(2)
    }
}

/// Returns the zone of a node.
pub(crate) fn zone(node: &Node) -> usize {
    let name = &node.meta["zone"];
    let position = ZONE_NAMES.iter().position(|other| other == name);
    position.expect("every node is in a zone")
}

/// The kind of jobs in a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// From a quarter of a core to eight, with much or little memory, up to twelve allocations.
    MixedSizes,
    /// Most jobs are small and few, a few are most of the demand.
    HeavyTailed,
    /// As mixed, but most may not be everywhere.
    WithConstraints,
}

impl Kind {
    pub(crate) const ALL: [Self; 3] = [Self::MixedSizes, Self::HeavyTailed, Self::WithConstraints];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::MixedSizes => "mixed sizes",
            Self::HeavyTailed => "heavy-tailed",
            Self::WithConstraints => "with constraints",
        }
    }
}

/// Makes jobs, one after the other.
pub(crate) struct Jobs {
    kind: Kind,
    rng: StdRng,
    made: u32,
}

impl Jobs {
    pub(crate) fn new(kind: Kind, seed: u64) -> Self {
        Self {
            kind,
            rng: StdRng::seed_from_u64(seed),
            made: 0,
        }
    }

    /// Goes on with other jobs.
    pub(crate) fn fork(&self, seed: u64) -> Self {
        Self {
            made: self.made,
            ..Self::new(self.kind, seed)
        }
    }

    pub(crate) fn next(&mut self) -> Job {
        self.made += 1;
        let (count, cpu_mhz, memory_mib) = match self.kind {
            Kind::HeavyTailed => self.heavy_tailed(),
            Kind::MixedSizes | Kind::WithConstraints => self.mixed(),
        };
        let id = format!("job-{}", self.made);
        let mut job = if self.rng.random_bool(0.5) {
            builders::service(&id, count)
        } else {
            builders::batch(&id, count)
        };
        let resources = &mut job.task_groups[0].tasks[0].resources;
        resources.cpu_mhz = cpu_mhz;
        resources.memory_mib = memory_mib;
        if self.kind == Kind::WithConstraints {
            self.constrain(&mut job);
        }
        job
    }

    fn mixed(&mut self) -> (u32, u32, u32) {
        let cpu = [250, 500, 1_000, 2_000, 4_000, 8_000];
        let memory = [512, 1_024, 2_048, 4_096, 8_192, 16_384];
        (
            self.rng.random_range(1..=12),
            cpu[self.rng.random_range(0..cpu.len())],
            memory[self.rng.random_range(0..memory.len())],
        )
    }

    fn heavy_tailed(&mut self) -> (u32, u32, u32) {
        let count = self.pareto(1.0, 1.2, 60.0);
        let cpu = self.pareto(300.0, 1.1, 15_000.0);
        // From half a MiB to 8 for each MHz: 2 is what nodes have.
        let ratio = 2_f64.powf(self.rng.random_range(-1.0..3.0));
        let memory = (cpu * ratio).min(30_000.0);
        (whole(count), whole(cpu), whole(memory))
    }

    /// Draws from a Pareto distribution, cut off at `most`.
    fn pareto(&mut self, least: f64, shape: f64, most: f64) -> f64 {
        let uniform: f64 = self.rng.random_range(0.0..1.0);
        (least / (1.0 - uniform).powf(1.0 / shape)).min(most)
    }

    fn constrain(&mut self, job: &mut Job) {
        match self.rng.random_range(0..10) {
            0..3 => {}
            3..6 => {
                let zone = self.zone();
                job.constraints.push(constraint(
                    "${meta.zone}",
                    Operator::Equal,
                    ZONE_NAMES[zone],
                ));
            }
            6..8 => {
                let zone = self.zone();
                let other = (zone + 1) % ZONES;
                let names = format!("{},{}", ZONE_NAMES[zone], ZONE_NAMES[other]);
                job.constraints
                    .push(constraint("${meta.zone}", Operator::SetContainsAny, &names));
            }
            _ => job.constraints.push(constraint(
                "${attr.kernel.version}",
                Operator::Version,
                ">= 6.0",
            )),
        }
        if self.rng.random_bool(0.25) {
            job.task_groups[0]
                .constraints
                .push(constraint("", Operator::DistinctHosts, ""));
        }
    }

    /// Zones are not equally wanted: 4 to 3 to 2 to 1.
    fn zone(&mut self) -> usize {
        match self.rng.random_range(0..10) {
            0..4 => 0,
            4..7 => 1,
            7..9 => 2,
            _ => 3,
        }
    }
}

fn constraint(left: &str, operator: Operator, right: &str) -> Constraint {
    Constraint {
        left: left.into(),
        operator,
        right: right.into(),
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the distributions are cut off far below"
)]
fn whole(amount: f64) -> u32 {
    amount as u32
}

/// Returns the capacity of all nodes.
pub(crate) fn capacity(nodes: &[Node]) -> ComparableResources {
    sum(nodes.iter().map(Node::available))
}

/// Returns the demand of all jobs.
pub(crate) fn demand<'a>(jobs: impl IntoIterator<Item = &'a Job>) -> ComparableResources {
    sum(jobs.into_iter().map(ask))
}

/// Returns the demand of all allocations of a job.
pub(crate) fn ask(job: &Job) -> ComparableResources {
    let group = &job.task_groups[0];
    let (one, count) = (group.ask(), u64::from(group.count));
    ComparableResources {
        cpu_mhz: one.cpu_mhz * count,
        memory_mib: one.memory_mib * count,
        disk_mib: one.disk_mib * count,
    }
}

fn sum(amounts: impl Iterator<Item = ComparableResources>) -> ComparableResources {
    amounts.fold(ComparableResources::default(), ComparableResources::plus)
}

/// Returns the larger of the shares of cpu and memory.
#[expect(clippy::cast_precision_loss, reason = "amounts are far below 2^52")]
pub(crate) fn share(part: ComparableResources, whole: ComparableResources) -> f64 {
    let cpu = part.cpu_mhz as f64 / whole.cpu_mhz as f64;
    cpu.max(part.memory_mib as f64 / whole.memory_mib as f64)
}

/// Tells whether a job is batch work.
pub(crate) fn is_batch(job: &Job) -> bool {
    job.job_type == JobType::Batch
}
