//! Cost of concurrent workers to each other, and of keeping them apart:
//! `cargo run --release -p scheduler --example contention`.
//!
//! In every round each of W workers plans its evaluation on the same snapshot, as `Run` does; then
//! the plans are verified and applied one after the other, as the plan-applier does, and refused
//! placements are planned again in the next round. There is always another evaluation waiting, so
//! contention is as bad as it gets with so many workers. Prints Markdown tables; counts only, so
//! the same seeds give the same figures on any machine. A cell is: rejected nodes a plan, attempts
//! an evaluation, evaluations that gave up, and nodes in use above the number that the sums need,
//! after every round.

#[path = "../packing/simulated_cluster.rs"]
mod simulated_cluster;
#[path = "../packing/workload.rs"]
mod workload;

use std::collections::VecDeque;

use model::{ComparableResources, EvalId, EvalStatus, Job};
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use scheduler::{Attempt, PlanOutcome, Run, Selection};

use simulated_cluster::{NOW, SimulatedCluster};
use workload::{Jobs, Kind, Sizes, demand, share};

const SEEDS: std::ops::Range<u64> = 1..6;
const WORKERS: [usize; 4] = [1, 4, 16, 64];
const NODES: usize = 500;
/// The demand in steady state, as a share of the cluster.
const FULL: f64 = 0.7;
const EVALS: u32 = 1_000;

/// The selection of nodes at first, and after a refusal.
const WAYS: [(&str, &[Selection]); 10] = [
    ("near-tie 0", &[selection(0.0, 1)]),
    ("near-tie 0.001", &[selection(0.001, 1)]),
    ("near-tie 0.01", &[selection(0.01, 1)]),
    ("near-tie 0.05", &[selection(0.05, 1)]),
    ("best 4", &[selection(0.001, 4)]),
    ("best 16", &[selection(0.001, 16)]),
    ("then near-tie 0.2", &[Selection::FIRST, selection(0.2, 1)]),
    ("then best 16", &[Selection::FIRST, selection(0.001, 16)]),
    ("then best 64", &[Selection::FIRST, selection(0.001, 64)]),
    (
        "then best 16, then 64",
        &[Selection::FIRST, selection(0.001, 16), selection(0.001, 64)],
    ),
];

const fn selection(near_tie: f64, among: u32) -> Selection {
    Selection { near_tie, among }
}

/// The state of the cluster at the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Start {
    /// Jobs come until the cluster is as full as it may be.
    Empty,
    /// Jobs have come and gone, and there are holes.
    InUse,
}

fn main() {
    let cases = [
        (Kind::MixedSizes, Start::InUse),
        (Kind::HeavyTailed, Start::InUse),
        (Kind::MixedSizes, Start::Empty),
    ];
    for (kind, start) in cases {
        let name = match start {
            Start::Empty => "an empty cluster",
            Start::InUse => "a cluster in use",
        };
        println!("\n{} on {name}:\n", kind.name());
        let columns = WORKERS.map(|workers| workers.to_string()).join(" | ");
        println!("| selection \\ workers | {columns} |");
        println!("|---|{}", "--:|".repeat(WORKERS.len()));
        let warm: Vec<_> = SEEDS.map(|seed| Rush::new(kind, start, seed)).collect();
        for (name, selections) in WAYS {
            let cells = WORKERS.map(|workers| {
                let mut sum = Figures::default();
                for rush in &warm {
                    sum.add(&rush.fork(selections).play(workers));
                }
                sum.to_string()
            });
            println!("| {name} | {} |", cells.join(" | "));
        }
    }
}

/// The counts of one or several rushes.
#[derive(Clone, Debug, Default)]
struct Figures {
    evals: u32,
    plans: u32,
    rejected: u32,
    gave_up: u32,
    /// After each round, all together.
    used: u64,
    bound: u64,
}

impl Figures {
    fn add(&mut self, other: &Self) {
        self.evals += other.evals;
        self.plans += other.plans;
        self.rejected += other.rejected;
        self.gave_up += other.gave_up;
        self.used += other.used;
        self.bound += other.bound;
    }
}

impl std::fmt::Display for Figures {
    #[expect(clippy::cast_precision_loss, reason = "sums of a few hundred nodes")]
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (evals, plans) = (f64::from(self.evals), f64::from(self.plans));
        write!(
            f,
            "{:.2}, {:.2}, {:.1} %, +{:.0} %",
            f64::from(self.rejected) / plans,
            plans / evals,
            f64::from(self.gave_up) / evals * 100.0,
            (self.used as f64 / self.bound as f64 - 1.0) * 100.0
        )
    }
}

/// A cluster with arriving and departing jobs.
struct Rush {
    seed: u64,
    start: Start,
    simulated: SimulatedCluster,
    /// The capacity of one node.
    size: ComparableResources,
    /// The capacity of all nodes.
    capacity: ComparableResources,
    jobs: Jobs,
    selections: &'static [Selection],
    live: Vec<Job>,
    rng: StdRng,
    /// Evaluations that gave up, and are delivered again.
    again: VecDeque<EvalId>,
    figures: Figures,
}

impl Rush {
    /// Returns a cluster in which jobs have come and gone, one after the other, for a while.
    fn new(kind: Kind, start: Start, seed: u64) -> Self {
        let nodes = workload::nodes(Sizes::Equal, NODES);
        let capacity = workload::capacity(&nodes);
        let mut rush = Self {
            seed,
            start,
            simulated: SimulatedCluster::new(&nodes, seed),
            size: nodes[0].available(),
            capacity,
            jobs: Jobs::new(kind, seed),
            selections: &[Selection::FIRST],
            live: Vec::new(),
            rng: StdRng::seed_from_u64(seed),
            again: VecDeque::new(),
            figures: Figures::default(),
        };
        if start == Start::InUse {
            rush.warm_up();
        }
        rush
    }

    /// Returns a copy with another selection of nodes.
    fn fork(&self, selections: &'static [Selection]) -> Self {
        let seed = self.seed + 1_000;
        Self {
            seed,
            simulated: self.simulated.fork(seed),
            jobs: self.jobs.fork(seed),
            selections,
            live: self.live.clone(),
            rng: StdRng::seed_from_u64(seed),
            again: VecDeque::new(),
            figures: Figures::default(),
            ..*self
        }
    }

    /// Fills the cluster, one after the other, and lets jobs come and go until it has holes.
    fn warm_up(&mut self) {
        for _ in 0..EVALS {
            self.make_room();
            let mut round = vec![self.next()];
            self.round(&mut round);
            assert!(round.is_empty(), "nobody else plans");
        }
        self.figures = Figures::default();
    }

    fn play(mut self, workers: usize) -> Figures {
        let mut busy = Vec::new();
        let mut begun = 0;
        while self.has_more(begun) || !busy.is_empty() {
            if self.start == Start::InUse {
                self.make_room();
            }
            while busy.len() < workers && self.has_more(begun) {
                begun += 1;
                busy.push(self.next());
            }
            self.round(&mut busy);
            self.count_nodes();
        }
        self.figures.evals = begun;
        self.figures
    }

    /// Counts the nodes in use, and the minimum for the sums of all placements.
    fn count_nodes(&mut self) {
        let snapshot = self.simulated.snapshot();
        let rows = snapshot.node_table().chunks().flatten();
        let used = rows.map(|row| row.used).filter(|used| used.cpu_mhz > 0);
        let (mut count, mut sum) = (0, ComparableResources::default());
        for used in used {
            count += 1;
            sum = sum.plus(used);
        }
        let bound = sum.cpu_mhz.div_ceil(self.size.cpu_mhz);
        let bound = bound.max(sum.memory_mib.div_ceil(self.size.memory_mib));
        self.figures.used += count;
        self.figures.bound += bound;
    }

    fn has_more(&self, begun: u32) -> bool {
        begun < EVALS && (self.start == Start::InUse || !self.is_full())
    }

    fn is_full(&self) -> bool {
        share(demand(&self.live), self.capacity) > FULL
    }

    /// Removes jobs while demand is above its target.
    fn make_room(&mut self) {
        while self.is_full() {
            let position = self.rng.random_range(0..self.live.len());
            let job = self.live.swap_remove(position);
            let eval = self.simulated.stop(&job.key());
            let decision = scheduler::schedule(
                &self.simulated.snapshot(),
                &self.simulated.eval(eval),
                NOW,
                0,
            );
            self.simulated.commit(&decision.plan);
        }
    }

    /// Returns the next evaluation: one that gave up, or that of a new job.
    fn next(&mut self) -> Run {
        let eval = self.again.pop_front().unwrap_or_else(|| {
            let job = self.jobs.next();
            let eval = self.simulated.register(&job);
            self.live.push(job);
            eval
        });
        Run::new(eval, String::new()).with_selections(self.selections)
    }

    /// Plans all evaluations on one snapshot, then commits plan after plan; completed ones are
    /// removed.
    fn round(&mut self, busy: &mut Vec<Run>) {
        let snapshot = self.simulated.snapshot();
        let mut plans = Vec::new();
        for run in busy.iter_mut() {
            match run.attempt(&snapshot, NOW, self.rng.random()) {
                Attempt::Submit(decision) => plans.push(decision.plan),
                Attempt::Overtaken => panic!("nobody else works on it"),
            }
        }
        let mut plans = plans.into_iter();
        busy.retain_mut(|run| {
            let plan = plans.next().expect("everybody has planned");
            let result = self.simulated.commit(&plan);
            let figures = &mut self.figures;
            figures.plans += 1;
            figures.rejected += u32::try_from(result.rejected_nodes.len()).expect("as many");
            let is_done = run.evaluate_result(&plan, &result) == PlanOutcome::Done;
            let outcome = plan.eval_outcome.as_ref();
            if is_done && outcome.is_some_and(|eval| eval.status == EvalStatus::Failed) {
                figures.gave_up += 1;
            }
            if is_done {
                self.again
                    .extend(plan.followup_evals.iter().map(|eval| eval.id));
            }
            !is_done
        });
    }
}
