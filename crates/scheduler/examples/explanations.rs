//! Time of an explanation: `cargo run --release -p scheduler --example explanations`.
//!
//! A job that fits nowhere, and one that fits everywhere and is not placed yet, on empty nodes of
//! fifty classes. Shows the best of several rounds, because of other load on the machine.

use std::time::{Duration, Instant};

use model::{Evaluation, Indexed, Job, Timestamp};
use scheduler::explain::{ExplainRequest, explain};
use state::{Change, Entity, Key, Snapshot, State};
use test_kit::builders;

const COUNT: u32 = 100;
const CLASSES: u128 = 50;
const ROUNDS: u64 = 5;

fn main() {
    println!("{:<18} {:>8} {:>12}", "job", "nodes", "explain ms");
    for nodes in [1_000, 10_000] {
        measure("fits nowhere", nodes, |job| {
            job.task_groups[0].tasks[0].resources.cpu_mhz = 5_000;
            job.constraints.push(model::Constraint {
                left: "${node.unique.name}".into(),
                operator: model::Operator::NotEqual,
                right: "n7".into(),
            });
        });
        measure("fits everywhere", nodes, |_| {});
    }
}

#[expect(clippy::disallowed_methods, reason = "a benchmark measures real time")]
fn measure(name: &str, nodes: u128, edit: impl FnOnce(&mut Job)) {
    let mut job = builders::service("web", COUNT);
    edit(&mut job);
    let (snapshot, eval) = cluster(nodes, job);
    let mut best = Duration::MAX;
    for seed in 0..ROUNDS {
        let request = ExplainRequest {
            eval: &eval,
            node: None,
            now: Timestamp(1),
            seed,
        };
        let began = Instant::now();
        let explanation = explain(&snapshot, &request);
        best = best.min(began.elapsed());
        let asked = explanation.groups[0].counts.total();
        assert_eq!(u128::from(asked), nodes, "every node is asked");
    }
    let milliseconds = best.as_secs_f64() * 1e3;
    println!("{name:<18} {nodes:>8} {milliseconds:>12.1}");
}

fn cluster(nodes: u128, job: Job) -> (Snapshot, Indexed<Evaluation>) {
    let eval = builders::evaluation(1, &job);
    let mut objects: Vec<(Key, Entity)> = (1..=nodes)
        .map(|number| {
            let mut node = builders::node(number);
            node.node_class = format!("c{}", number % CLASSES);
            node.computed_class = placement::computed_class(&node);
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
