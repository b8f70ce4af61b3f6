//! Differential test: equal histories on the embedded store and on a real etcd give equal answers.
//!
//! A history is random requests over a few keys, generated from a printed seed. All answers are
//! compared with their revisions, errors with code and text, and the events of watches, revision by
//! revision. Only necessary differences are left out: the server's identity, ids that a server chose,
//! and the fragmentation of watch events.
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
use crate::support::etcd_process;

/// Histories that run unless told otherwise.
const HISTORIES: u64 = 20;

/// Requests of each.
const STEPS: u64 = 300;

/// Histories that run at the same time: they mostly wait for etcd's watches to catch up.
const AT_ONCE: usize = 6;

#[test]
fn random_histories_are_answered_as_by_etcd() {
    if !etcd_process::is_available("random_histories_are_answered_as_by_etcd") {
        return;
    }
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
                    run(*seed, steps);
                }
            });
        }
    });
}

#[tokio::main(flavor = "current_thread")]
async fn run(seed: u64, steps: u64) {
    let mut history = History::start(seed).await;
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
