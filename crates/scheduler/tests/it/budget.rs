//! Budget of placements: allocations of memory for each, by kind of job.
//!
//! Counts, not times, so a busy machine makes no difference. A kind that takes more than its budget
//! fails the test: mend it, or raise the budget in the same change and say why. One that takes much
//! less fails as well, so that the table stays true. The example `allocations` prints a larger table.

#[path = "../../benches/setup.rs"]
mod setup;

use setup::Shape;

const NODES: u32 = 2_000;
const RACKS: u32 = 50;

/// Kind → allocations of memory for one evaluation that places 1, and one that places 600.
const BUDGET: [(Shape, [u64; 2]); 6] = [
    (Shape::Plain, [165, 2150]),
    (Shape::Spread, [225, 2000]),
    (Shape::Affinity, [190, 2100]),
    (Shape::SpreadAndAffinity, [250, 2330]),
    (Shape::DistinctHosts, [165, 2150]),
    (Shape::Ports, [180, 7100]),
];

fn count(cluster: &state::Snapshot, shape: Shape, count: u32) -> u64 {
    let (snapshot, eval) = setup::register(cluster, setup::job(shape, count, RACKS));
    // Caches of the snapshot are not part of the first evaluation.
    let decision = setup::plan(&snapshot, &eval, 0);
    assert_eq!(decision.plan.placement_count(), count as usize);
    let mut kept = None;
    let info = allocation_counter::measure(|| kept = Some(setup::plan(&snapshot, &eval, 0)));
    drop(kept);
    info.count_total
}

#[test]
fn placements_stay_within_their_budget() {
    let cluster = setup::cluster(NODES, RACKS);
    let measured = BUDGET.map(|(shape, _)| (shape, [1, 600].map(|n| count(&cluster, shape, n))));
    let is_off = |budget: u64, found: u64| found > budget || found < budget * 8 / 10;
    let off = BUDGET
        .iter()
        .zip(&measured)
        .any(|((_, budget), (_, found))| {
            budget
                .iter()
                .zip(found)
                .any(|(budget, found)| is_off(*budget, *found))
        });
    assert!(
        !off,
        "allocations of memory: {measured:?}\nbudget: {BUDGET:?}"
    );
}
