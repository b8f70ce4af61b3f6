//! `cargo bench -p scheduler`: one evaluation that places a whole group, one that places a single
//! allocation in a full cluster, and one with preemption.
//!
//! Measures a part of the grid; `KAFILA_BENCH=full` measures all of it, and a filter as in
//! `cargo bench -p scheduler -- spread/10000` chooses by name. The example `grid` prints the grid as
//! one table in a few minutes.

mod setup;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};

use setup::{COUNTS, NODES, RACKS, Shape};

fn placements(criterion: &mut Criterion) {
    let is_full = std::env::var("KAFILA_BENCH").is_ok_and(|what| what == "full");
    for nodes in NODES {
        for racks in RACKS {
            if !is_full && (racks != 50 || !matches!(nodes, 1_000 | 10_000)) {
                continue;
            }
            let cluster = setup::cluster(nodes, racks);
            for count in COUNTS {
                if !is_full && !matches!(count, 300 | 1_200) {
                    continue;
                }
                for shape in Shape::ALL {
                    let (snapshot, eval) =
                        setup::register(&cluster, setup::job(shape, count, racks));
                    let name = format!("{}/{nodes}x{racks}", shape.name());
                    let mut group = criterion.benchmark_group(name);
                    group.throughput(Throughput::Elements(u64::from(count)));
                    let mut seed = 0;
                    group.bench_function(count.to_string(), |bencher| {
                        let next = || {
                            seed += 1;
                            seed
                        };
                        // Callers drop the plan, so that is not measured.
                        bencher.iter_batched(
                            next,
                            |seed| setup::plan(&snapshot, &eval, seed),
                            BatchSize::SmallInput,
                        );
                    });
                }
            }
        }
    }
}

fn steady_state(criterion: &mut Criterion) {
    let full = setup::fill(&setup::cluster(10_000, 50), 100_000);
    let mut group = criterion.benchmark_group("one in a full cluster");
    for shape in Shape::ALL {
        let (snapshot, eval) = setup::register(&full, setup::job(shape, 1, 50));
        let mut seed = 0;
        group.bench_function(shape.name(), |bencher| {
            bencher.iter(|| {
                seed += 1;
                setup::plan(&snapshot, &eval, seed)
            });
        });
    }
}

/// Preemption: ten allocations on every node, and no room.
fn preemption(criterion: &mut Criterion) {
    for nodes in [1_000, 10_000] {
        let full = setup::fill_up(&setup::cluster(nodes, 50), nodes * 10);
        let mut group = criterion.benchmark_group(format!("preemption/{nodes}x50"));
        for shape in [Shape::Plain, Shape::Spread, Shape::Ports] {
            for count in [1, 300] {
                let mut job = setup::job(shape, count, 50);
                job.priority = 90;
                let (snapshot, eval) = setup::register(&full, job);
                let found = setup::plan_with_preemption(&snapshot, &eval, 1).plan;
                let evicted = found.preemptions.values().flatten().count();
                assert_eq!(found.placement_count(), count as usize);
                assert!(evicted >= count as usize, "{evicted}");
                group.throughput(Throughput::Elements(u64::from(count)));
                let mut seed = 0;
                group.bench_function(format!("{}/{count}", shape.name()), |bencher| {
                    bencher.iter(|| {
                        seed += 1;
                        setup::plan_with_preemption(&snapshot, &eval, seed)
                    });
                });
            }
        }
    }
}

criterion_group!(benches, placements, steady_state, preemption);
criterion_main!(benches);
