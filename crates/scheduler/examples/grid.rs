//! Placements per second of one core, for the whole grid of clusters and jobs, as one Markdown
//! table: `cargo run --release -p scheduler --example grid`.
//!
//! A figure is the median of several runs of one evaluation that places the whole group, in time on
//! the core; failed placements (distinct hosts, when there are fewer than allocations) do not
//! count. Building the plan is part of it, dropping it is not. `KAFILA_BENCH=steady` prints the
//! last tables alone.

#[path = "../benches/setup.rs"]
mod setup;

use std::time::Duration;

use state::Snapshot;

use setup::{COUNTS, NODES, RACKS, Shape};

const RUNS: u64 = 41;
/// The number of evaluations for the 99th percentile.
const SINGLE_RUNS: u64 = 3_000;

fn main() {
    if !std::env::var("KAFILA_BENCH").is_ok_and(|what| what == "steady") {
        print_grid();
    }
    print_others();
    print_flatness();
    print_steady_state();
}

fn print_grid() {
    println!("Thousand placements a second on one core:\n");
    let names = Shape::ALL.map(Shape::name).join(" | ");
    println!("| nodes | racks | count | {names} |");
    println!("|--:|--:|--:|{}", "--:|".repeat(Shape::ALL.len()));
    for nodes in NODES {
        for racks in RACKS {
            let cluster = setup::cluster(nodes, racks);
            for count in COUNTS {
                let cells = measure(&cluster, Shape::ALL, count, racks).map(|(placed, took)| {
                    let rate = f64::from(placed) / took.as_secs_f64() / 1e3;
                    format!("{rate:.0}")
                });
                println!("| {nodes} | {racks} | {count} | {} |", cells.join(" | "));
            }
        }
    }
}

/// Returns the number of placements, and the median time of one evaluation, for each shape.
///
/// The shapes take turns, so that slow phases of the machine affect all of them.
fn measure<const N: usize>(
    cluster: &Snapshot,
    shapes: [Shape; N],
    count: u32,
    racks: u32,
) -> [(u32, Duration); N] {
    let registered = shapes.map(|shape| setup::register(cluster, setup::job(shape, count, racks)));
    let mut placed = [0; N];
    let mut times = [const { Vec::new() }; N];
    for seed in 0..RUNS {
        for (position, (snapshot, eval)) in registered.iter().enumerate() {
            let (decision, took) = setup::timed(|| setup::plan(snapshot, eval, seed));
            let count = decision.plan.placement_count();
            placed[position] = u32::try_from(count).expect("a count is a u32");
            times[position].push(took);
        }
    }
    std::array::from_fn(|position| (placed[position], percentile(&mut times[position], 50)))
}

fn percentile(times: &mut [Duration], percent: usize) -> Duration {
    times.sort_unstable();
    times[(times.len() - 1) * percent / 100]
}

fn print_others() {
    println!("\nWhat the grid leaves out, 1,200 placements, 50 racks, milliseconds:\n");
    println!("| | 1,000 nodes | 10,000 nodes |\n|---|--:|--:|");
    let shapes = [
        Shape::Plain,
        Shape::HostSpread,
        Shape::DistinctProperty,
        Shape::UniqueConstraint,
    ];
    let [few, many] = [1_000, 10_000].map(|nodes| {
        let cluster = setup::cluster(nodes, 50);
        measure(&cluster, shapes, 1_200, 50).map(|(_, took)| took.as_secs_f64() * 1e3)
    });
    for ((shape, few), many) in shapes.iter().zip(few).zip(many) {
        println!("| {} | {few:.2} | {many:.2} |", shape.name());
    }
}

fn print_flatness() {
    println!("\n1,200 placements on 10,000 nodes, milliseconds, by what runs there already:\n");
    let names = Shape::ALL.map(Shape::name).join(" | ");
    println!("| running | {names} |");
    println!("|--:|{}", "--:|".repeat(Shape::ALL.len()));
    let cluster = setup::cluster(10_000, 50);
    for running in [0, 50_000, 100_000, 200_000] {
        let cluster = if running == 0 {
            cluster.clone()
        } else {
            setup::fill(&cluster, running)
        };
        let times = measure(&cluster, Shape::ALL, 1_200, 50);
        let cells = times.map(|(_, took)| format!("{:.2}", took.as_secs_f64() * 1e3));
        println!("| {running} | {} |", cells.join(" | "));
    }
}

fn print_steady_state() {
    println!("\nOne placement on 10,000 nodes that are 70 % full of 100,000 allocations, µs:\n");
    println!("| | p50 | p99 |\n|---|--:|--:|");
    let full = setup::fill(&setup::cluster(10_000, 50), 100_000);
    for shape in Shape::ALL {
        let (snapshot, eval) = setup::register(&full, setup::job(shape, 1, 50));
        let mut times = Vec::new();
        for seed in 0..SINGLE_RUNS {
            let (decision, took) = setup::timed(|| setup::plan(&snapshot, &eval, seed));
            assert_eq!(decision.plan.placement_count(), 1, "it has a place");
            times.push(took);
        }
        let name = shape.name();
        let (half, most) = (percentile(&mut times, 50), percentile(&mut times, 99));
        let micros = |time: Duration| time.as_secs_f64() * 1e6;
        println!("| {name} | {:.0} | {:.0} |", micros(half), micros(most));
    }
}
