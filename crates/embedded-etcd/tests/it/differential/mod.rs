//! The same histories on the embedded store and on a real etcd: is every answer the same?
//!
//! A history is random requests over a few keys, made from a seed that is printed. Compared are all
//! answers with their revisions, errors with code and words, and what watches saw, revision by
//! revision; left out is only what must differ: who answers, ids that a server chose, and how watch
//! events are cut into messages.
//!
//! `KAFILA_SEEDS` runs more histories, `KAFILA_SEED` one, `KAFILA_STEPS` longer ones.

mod edges;
mod generate;
mod history;
mod normalise;
mod side;
mod step;

use std::{
    env,
    sync::atomic::{AtomicUsize, Ordering},
};

use self::history::History;
use crate::support::etcd_process::find_etcd;

/// Histories that run unless told otherwise.
const HISTORIES: u64 = 20;

/// Requests of each.
const STEPS: u64 = 300;

/// Histories that run at the same time: they mostly wait for etcd's watches to catch up.
const AT_ONCE: usize = 6;

#[test]
fn random_histories_are_answered_as_by_etcd() {
    let Some(etcd) = find_etcd("random_histories_are_answered_as_by_etcd") else {
        return;
    };
    let seeds: Vec<u64> = match number("KAFILA_SEED") {
        Some(seed) => vec![seed],
        None => (0..number("KAFILA_SEEDS").unwrap_or(HISTORIES)).collect(),
    };
    let steps = number("KAFILA_STEPS").unwrap_or(STEPS);
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE.min(seeds.len()) {
            scope.spawn(|| {
                while let Some(seed) = seeds.get(next.fetch_add(1, Ordering::Relaxed)) {
                    run(&etcd, *seed, steps);
                }
            });
        }
    });
}

#[tokio::main(flavor = "current_thread")]
async fn run(etcd: &str, seed: u64, steps: u64) {
    let mut history = History::start(etcd, seed).await;
    history.run(steps).await;
    println!("seed {seed}: {}", history.summary());
    history.end().await;
}

fn number(name: &str) -> Option<u64> {
    let text = env::var(name).ok()?;
    Some(
        text.parse()
            .unwrap_or_else(|_| panic!("{name} is a number, not {text:?}")),
    )
}
