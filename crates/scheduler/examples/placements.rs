//! Placements per second of one core: `cargo run --release -p scheduler --example placements`.
//!
//! One batch job of 10,000 allocations on empty nodes, planned at once; then the plan is verified
//! as the plan-applier would, on one thread. Shows the best of several rounds, because of other
//! load on the machine.

use std::time::{Duration, Instant};

use applier::{PlanVerification, verify};
use model::job::{Network, Port};
use model::{Evaluation, Indexed, Job, Timestamp};
use scheduler::schedule;
use state::{Change, Entity, Key, Snapshot, State};
use test_kit::builders;

const COUNT: u32 = 10_000;
const ROUNDS: u64 = 7;
const NOW: Timestamp = Timestamp(1);

fn main() {
    println!(
        "{:<34} {:>8} {:>12} {:>14} {:>12}",
        "job", "nodes", "schedule ms", "placements/s", "verify ms"
    );
    for nodes in [1_000, 5_000] {
        measure("plain", nodes, |_| {});
        measure("a dynamic port", nodes, |job| {
            let port = Port {
                label: "http".into(),
                static_port: None,
                to: None,
                host_network: "default".into(),
                ignore_collision: false,
            };
            job.task_groups[0].networks = vec![Network {
                mode: "host".into(),
                ports: vec![port],
                ..Network::default()
            }];
        });
        measure("a constraint on every node's name", nodes, |job| {
            job.constraints.push(model::Constraint {
                left: "${node.unique.name}".into(),
                operator: model::Operator::NotEqual,
                right: "n7".into(),
            });
        });
    }
}

fn measure(name: &str, nodes: u128, edit: impl FnOnce(&mut Job)) {
    let mut job = builders::batch("load", COUNT);
    job.task_groups[0].tasks[0].resources.cpu_mhz = 100;
    job.task_groups[0].tasks[0].resources.memory_mib = 64;
    edit(&mut job);
    let (snapshot, eval) = cluster(nodes, job);
    let (mut scheduling, mut verifying) = (Duration::MAX, Duration::MAX);
    for seed in 0..ROUNDS {
        let (decision, took) = timed(|| schedule(&snapshot, &eval, NOW, seed));
        assert_eq!(
            decision.plan.placement_count(),
            COUNT as usize,
            "all of them have a place"
        );
        scheduling = scheduling.min(took);
        let (verdict, took) = timed(|| verify(&snapshot, &decision.plan, NOW));
        let whole = matches!(&verdict, PlanVerification::Accepted(accepted) if accepted.rejected_nodes.is_empty());
        assert!(whole, "a plan on its own snapshot is accepted");
        verifying = verifying.min(took);
    }
    let rate = f64::from(COUNT) / scheduling.as_secs_f64();
    println!(
        "{name:<34} {nodes:>8} {:>12.1} {rate:>14.0} {:>12.1}",
        scheduling.as_secs_f64() * 1e3,
        verifying.as_secs_f64() * 1e3
    );
}

#[expect(clippy::disallowed_methods, reason = "a benchmark measures real time")]
fn timed<T>(body: impl FnOnce() -> T) -> (T, Duration) {
    let began = Instant::now();
    let value = body();
    (value, began.elapsed())
}

fn cluster(nodes: u128, job: Job) -> (Snapshot, Indexed<Evaluation>) {
    let eval = builders::evaluation(1, &job);
    let mut objects: Vec<(Key, Entity)> = (1..=nodes)
        .map(|number| {
            let node = builders::node(number);
            (Key::Node(node.id), Entity::Node(Box::new(node)))
        })
        .collect();
    objects.push((Key::Eval(eval.id), Entity::Eval(Box::new(eval.clone()))));
    objects.push((Key::Job(job.key()), Entity::Job(Box::new(job))));
    let changes = objects.into_iter().map(|(key, entity)| Change::Put {
        key,
        entity,
        create_index: 1,
        modify_index: 1,
    });
    let snapshot = State::from_list(1, changes).snapshot();
    let eval = Indexed {
        create_index: 1,
        modify_index: 1,
        value: eval,
    };
    (snapshot, eval)
}
