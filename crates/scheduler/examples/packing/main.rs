//! Nodes used by a trace, against sampling and a lower bound for any scheduler:
//! `cargo run --release -p scheduler --example packing`.
//!
//! Prints one Markdown table and writes `docs/packing.svg`. Jobs arrive and depart; the same traces
//! are placed by the scheduler through its public entry, with every plan verified and applied as the
//! plan-applier would, and by sampling. Counts only, so the same seeds give the same figures on any
//! machine. An argument is the first of the seeds, 1 unless given.

mod bound;
mod plot;
mod range;
mod sampling;
mod simulated_cluster;
mod trace;
mod workload;

use model::{Job, JobKey, Node};
use scheduler::schedule;

use bound::{Bound, Demand, nodes_needed};
use plot::Panel;
use range::range;
use sampling::{Limit, Sampling};
use simulated_cluster::{NOW, SimulatedCluster};
use trace::{Event, STAYS_UNTIL};
use workload::{Kind, Sizes, Used, ZONES};

const SEEDS: u64 = 11;
const NODES: usize = 400;
const EVENTS: usize = 2_000;
/// The demand at the peak, as a share of the cluster: even the worst placer fits it.
const PEAK: f64 = 0.6;
const SVG: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/packing.svg");

/// The placers compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Placer {
    EveryNode,
    Sampling(Limit),
}

const PLACERS: [Placer; 3] = [
    Placer::EveryNode,
    Placer::Sampling(Limit::ByType),
    Placer::Sampling(Limit::Two),
];

fn main() {
    let first_seed = std::env::args().nth(1).map_or(1, |seed| {
        seed.parse()
            .expect("the argument is the first of the seeds")
    });
    let seeds = first_seed..first_seed + SEEDS;
    let mut panels = Vec::new();
    let mut lines = Vec::new();
    println!("| trace | nodes | counted | lower bound | every node | sampling | two candidates |");
    println!("|---|---|---|--:|--:|--:|--:|");
    for kind in Kind::ALL {
        for sizes in Sizes::ALL {
            let runs: Vec<_> = seeds
                .clone()
                .map(|seed| Run::new(kind, sizes, seed))
                .collect();
            let print = |counted, counts: fn(&Run) -> Counts| {
                print_row(kind, sizes, counted, &runs, counts);
            };
            print("at the peak", |run| run.at_peak().map(|used| used.nodes));
            print("at the end", |run| run.at_end().map(|used| used.nodes));
            if sizes == Sizes::Mixed {
                print("at the peak, by size", |run| {
                    run.at_peak().map(Used::middle_nodes)
                });
                print("at the end, by size", |run| {
                    run.at_end().map(Used::middle_nodes)
                });
            }
            print("needed", |run| run.needed);
            lines.push(placed_row(kind, sizes, &runs));
            let name = format!("{}, {}", kind.name(), sizes.name());
            let sizes = |used: [Used; 1 + PLACERS.len()]| used.map(Used::middle_nodes);
            let series = runs
                .into_iter()
                .map(|run| run.used.into_iter().map(sizes).collect());
            let series = series.collect();
            panels.push(Panel { name, runs: series });
        }
    }
    println!("\n| trace | nodes | every node | sampling | two candidates |");
    println!("|---|---|--:|--:|--:|");
    lines.iter().for_each(|line| println!("{line}"));
    std::fs::write(SVG, plot::svg(&panels)).expect("docs/ can be written");
    eprintln!("wrote docs/packing.svg");
}

/// A lower bound, then the nodes used by each placer: a line of the plot each.
type Counts = [usize; 1 + PLACERS.len()];

struct Run {
    /// After each event.
    used: Vec<[Used; 1 + PLACERS.len()]>,
    /// Nodes that a cluster must have for the demand of the peak.
    needed: Counts,
    /// Thousandths of that demand placed on as many nodes as the lower bound.
    placed: [usize; PLACERS.len()],
}

impl Run {
    fn new(kind: Kind, sizes: Sizes, seed: u64) -> Self {
        let nodes = workload::nodes(sizes, NODES);
        let events = trace::trace(kind, &nodes, EVENTS, PEAK, seed);
        let columns = [
            bounds(&nodes, &events),
            play(PLACERS[0], &nodes, &events, seed),
            play(PLACERS[1], &nodes, &events, seed),
            play(PLACERS[2], &nodes, &events, seed),
        ];
        let after = |event: usize| columns.each_ref().map(|column| column[event]);
        let jobs = live_at(&events, STAYS_UNTIL);
        let examples = workload::nodes(sizes, ZONES);
        let least = nodes_needed(sizes, &Demand::of(&jobs, &examples), NODES);
        Self {
            used: (0..EVENTS).map(after).collect(),
            needed: needed(sizes, &jobs, least, seed),
            placed: PLACERS.map(|placer| {
                let nodes = workload::nodes(sizes, least);
                placed(placer, &nodes, &jobs, seed)
            }),
        }
    }

    fn at_peak(&self) -> [Used; 1 + PLACERS.len()] {
        self.used[event_at(STAYS_UNTIL) - 1]
    }

    fn at_end(&self) -> [Used; 1 + PLACERS.len()] {
        self.used[EVENTS - 1]
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "a few thousand events"
)]
fn event_at(part: f64) -> usize {
    (EVENTS as f64 * part) as usize
}

/// Returns the live jobs at this part of the trace, oldest first.
fn live_at(events: &[Event], part: f64) -> Vec<Job> {
    let mut live: Vec<Job> = Vec::new();
    for event in &events[..event_at(part)] {
        match event {
            Event::Arrive(job) => live.push(Job::clone(job)),
            Event::Depart(key) => live.retain(|job| job.key() != *key),
        }
    }
    live
}

fn bounds(nodes: &[Node], events: &[Event]) -> Vec<Used> {
    let bound = Bound::new(nodes);
    let mut live: Vec<&Job> = Vec::new();
    let after = events.iter().map(|event| {
        match event {
            Event::Arrive(job) => live.push(job),
            Event::Depart(key) => live.retain(|job| job.key() != *key),
        }
        bound.used(&Demand::of(live.iter().copied(), &nodes[..ZONES]))
    });
    after.collect()
}

/// Returns the number of used nodes after each event.
fn play(placer: Placer, nodes: &[Node], events: &[Event], seed: u64) -> Vec<Used> {
    let mut cluster = Cluster::new(placer, nodes, seed);
    let after = events.iter().map(|event| {
        match event {
            Event::Arrive(job) => {
                let placed = cluster.arrive(job);
                assert_eq!(
                    placed, job.task_groups[0].count,
                    "there is room: {placer:?}"
                );
            }
            Event::Depart(key) => cluster.depart(key),
        }
        cluster.used(nodes)
    });
    after.collect()
}

/// Returns the sizes of the smallest clusters that take all of `jobs`, one after the other; no
/// cluster takes them with less than `least` nodes.
///
/// Found by halving, as if a larger cluster always took what a smaller one does; it is nearly so.
fn needed(sizes: Sizes, jobs: &[Job], least: usize, seed: u64) -> Counts {
    let mut counts = [least; 1 + PLACERS.len()];
    for (count, placer) in counts[1..].iter_mut().zip(PLACERS) {
        let (mut low, mut high) = (least, NODES);
        while low < high {
            let middle = usize::midpoint(low, high);
            let nodes = workload::nodes(sizes, middle);
            let mut cluster = Cluster::new(placer, &nodes, seed);
            let mut jobs = jobs.iter();
            if jobs.all(|job| cluster.arrive(job) == job.task_groups[0].count) {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        *count = low;
    }
    counts
}

/// Returns the placed part of the demand of `jobs` in thousandths, by the dimension that is
/// shortest.
fn placed(placer: Placer, nodes: &[Node], jobs: &[Job], seed: u64) -> usize {
    let mut cluster = Cluster::new(placer, nodes, seed);
    let placed = jobs.iter().map(|job| {
        let mut placed = job.clone();
        placed.task_groups[0].count = cluster.arrive(job);
        placed
    });
    let placed: Vec<_> = placed.collect();
    let share = workload::share(workload::demand(&placed), workload::demand(jobs));
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "up to 1"
    )]
    let thousandths = (share * 1e3) as usize;
    thousandths
}

/// A cluster with its placer.
enum Cluster<'a> {
    EveryNode(Box<SimulatedCluster>, u64),
    Sampling(Box<Sampling<'a>>),
}

impl<'a> Cluster<'a> {
    fn new(placer: Placer, nodes: &'a [Node], seed: u64) -> Self {
        match placer {
            Placer::EveryNode => {
                Self::EveryNode(Box::new(SimulatedCluster::new(nodes, seed)), seed)
            }
            Placer::Sampling(limit) => Self::Sampling(Box::new(Sampling::new(nodes, limit, seed))),
        }
    }

    /// Places the allocations of a job; returns the number of placements.
    fn arrive(&mut self, job: &Job) -> u32 {
        match self {
            Self::EveryNode(simulated, seed) => {
                let eval = simulated.register(job);
                run(simulated, eval, seed)
            }
            Self::Sampling(sampling) => sampling.arrive(job),
        }
    }

    fn depart(&mut self, job: &JobKey) {
        match self {
            Self::EveryNode(simulated, seed) => {
                let eval = simulated.stop(job);
                run(simulated, eval, seed);
            }
            Self::Sampling(sampling) => sampling.depart(job),
        }
    }

    fn used(&self, nodes: &[Node]) -> Used {
        match self {
            Self::EveryNode(simulated, _) => {
                let snapshot = simulated.snapshot();
                let is_used = |node: &&Node| {
                    snapshot
                        .usage(node.id)
                        .is_some_and(|usage| !usage.is_empty())
                };
                Used::count(nodes.iter().filter(is_used))
            }
            Self::Sampling(sampling) => sampling.used(),
        }
    }
}

/// Plans for an evaluation and commits the plan; returns the number of placements.
fn run(simulated: &mut SimulatedCluster, eval: model::EvalId, seed: &mut u64) -> u32 {
    *seed += 1;
    let decision = schedule(&simulated.snapshot(), &simulated.eval(eval), NOW, *seed);
    let result = simulated.commit(&decision.plan);
    assert!(result.rejected_nodes.is_empty(), "made on its own snapshot");
    u32::try_from(result.placed.len()).expect("a count is a u32")
}

fn print_row(
    kind: Kind,
    sizes: Sizes,
    counted: &str,
    runs: &[Run],
    counts: impl Fn(&Run) -> Counts,
) {
    let all: Vec<_> = runs.iter().map(counts).collect();
    let cells = (0..=PLACERS.len()).map(|column| {
        let [least, median, most] = range(all.iter().map(|counts| counts[column]));
        if column == 0 {
            return format!("{median} ({least}–{most})");
        }
        #[expect(clippy::cast_precision_loss, reason = "a few hundred nodes")]
        let over = all
            .iter()
            .map(|counts| (counts[column] as f64 / counts[0] as f64 - 1.0) * 100.0);
        let mut over: Vec<_> = over.collect();
        over.sort_by(f64::total_cmp);
        let over = over[over.len() / 2];
        format!("{median} ({least}–{most}), +{over:.0} %")
    });
    let cells = cells.collect::<Vec<_>>().join(" | ");
    println!(
        "| {} | {} | {counted} | {cells} |",
        kind.name(),
        sizes.name()
    );
}

fn placed_row(kind: Kind, sizes: Sizes, runs: &[Run]) -> String {
    let cells = (0..PLACERS.len()).map(|column| {
        let cell = range(runs.iter().map(|run| run.placed[column]));
        let [least, median, most] = cell.map(|part| format!("{}.{}", part / 10, part % 10));
        format!("{median} % ({least}–{most})")
    });
    let cells = cells.collect::<Vec<_>>().join(" | ");
    format!("| {} | {} | {cells} |", kind.name(), sizes.name())
}
