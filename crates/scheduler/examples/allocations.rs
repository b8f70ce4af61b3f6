//! Heap allocations per placement, as a Markdown table:
//! `cargo run --release -p scheduler --example allocations`.
//!
//! Counts, so other load on the machine makes no difference. A placement itself is some heap
//! objects (the allocation, its name, its ports), which are included; the snapshot, the evaluation
//! and dropping the plan are not.

#[path = "../benches/setup.rs"]
mod setup;

use setup::Shape;

const NODES: u32 = 5_000;
const RACKS: u32 = 50;
const COUNTS: [u32; 3] = [1, 50, 1_200];

fn main() {
    println!("Allocations of memory a placement, {NODES} nodes in {RACKS} racks:\n");
    let columns = COUNTS.map(|count| format!("count {count}")).join(" | ");
    println!("| job | {columns} | bytes at {} |", COUNTS[2]);
    println!("|---|{}--:|", "--:|".repeat(COUNTS.len()));
    let cluster = setup::cluster(NODES, RACKS);
    for shape in Shape::ALL {
        let cells = COUNTS.map(|count| count_one(&cluster, shape, count));
        let times = cells.map(|(times, _)| format!("{times:.1}")).join(" | ");
        println!("| {} | {times} | {:.0} |", shape.name(), cells[2].1);
    }
}

/// Returns the allocations and bytes that each placement of one evaluation takes.
fn count_one(cluster: &state::Snapshot, shape: Shape, count: u32) -> (f64, f64) {
    let (snapshot, eval) = setup::register(cluster, setup::job(shape, count, RACKS));
    // Caches of the snapshot are not part of the first evaluation.
    let decision = setup::plan(&snapshot, &eval, 0);
    let placed = decision.plan.placement_count();
    let mut kept = None;
    let info = allocation_counter::measure(|| kept = Some(setup::plan(&snapshot, &eval, 0)));
    drop(kept);
    let each = |total: u64| total as f64 / placed as f64;
    (each(info.count_total), each(info.bytes_total))
}
