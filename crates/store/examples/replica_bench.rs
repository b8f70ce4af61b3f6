//! Throughput of placements through the store into a replica.
//!
//! `cargo run --release -p store --example replica_bench [keys] [endpoint]`: without an endpoint, an
//! etcd of its own is started (needs one on the PATH, or `KAFILA_ETCD`), then the embedded one.
//! Writes allocations in transactions of 500, four at a time, while a replica follows; then lists
//! them. `apply` counts only the time spent decoding and applying: its rate is what one replica
//! could follow if everything before it were free.

use std::error::Error;
use std::time::Duration;

use model::NodeId;
use state::Key;
use store::{Client, ClientOptions, Commit, Replica, ReplicaMetrics, ReplicaOptions};
use store_test_kit::TestStore;
use test_kit::builders::{allocation, service};
use test_kit::etcd::Etcd;
use test_kit::writes;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

const TIMEOUT: Duration = Duration::from_secs(120);
const KEYS_PER_TXN: u128 = 500;
const WRITERS: u128 = 4;
const NODES: u128 = 5_000;

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

#[tokio::main]
async fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let keys = arguments
        .next()
        .map_or(Ok(200_000), |text| text.parse::<u128>())?;
    if let Some(endpoint) = arguments.next() {
        return measure(&endpoint, &endpoint, keys).await;
    }
    if test_kit::etcd::available() {
        let etcd = Etcd::start().await?;
        measure("etcd, no fsync", &etcd.endpoint(), keys).await?;
    }
    let store = TestStore::start().await;
    measure("embedded, in memory", &store.endpoint, keys).await
}

async fn measure(name: &str, endpoint: &str, keys: u128) -> Result<()> {
    let client = Client::connect(&[endpoint.to_owned()], ClientOptions::default()).await?;
    println!("{name}: {keys} allocations");
    for subscribed in [false, true] {
        follow(&client, keys, subscribed).await?;
    }
    let started = Instant::now();
    let replica = Replica::start(client, ReplicaOptions::default(), CancellationToken::new());
    let listed = replica.ready(TIMEOUT).await?.allocs().count();
    println!(
        "  list of {listed}: {:.2} s",
        started.elapsed().as_secs_f64()
    );
    Ok(())
}

async fn follow(client: &Client, keys: u128, subscribed: bool) -> Result<()> {
    let metrics = ReplicaMetrics::default();
    let options = ReplicaOptions {
        metrics: metrics.clone(),
        ..ReplicaOptions::default()
    };
    let drain = CancellationToken::new();
    let replica = Replica::start(client.clone(), options, drain.clone());
    replica.ready(TIMEOUT).await?;
    let (_, mut changes) = replica.subscribe();
    if subscribed {
        tokio::spawn(async move { while changes.next().await.is_some() {} });
    } else {
        drop(changes);
    }
    let first = if subscribed { keys } else { 0 };
    let started = Instant::now();
    let mut writers = JoinSet::new();
    for writer in 0..WRITERS {
        writers.spawn(write(
            client.clone(),
            first + writer * keys / WRITERS,
            keys / WRITERS,
        ));
    }
    let mut last = 0;
    while let Some(revision) = writers.join_next().await {
        last = last.max(revision??);
    }
    let written = started.elapsed();
    replica.wait_for(last, TIMEOUT).await?;
    let shown = started.elapsed();
    drain.cancel();
    let (changes, apply) = (metrics.changes.get(), metrics.apply_seconds.get());
    let rate = |seconds: f64| keys as f64 / seconds;
    println!(
        "  {}: written at {:.0}/s, shown at {:.0}/s ({:.0} ms later); apply {:.1} us each, {:.0}/s",
        if subscribed {
            "with a subscriber"
        } else {
            "without one"
        },
        rate(written.as_secs_f64()),
        rate(shown.as_secs_f64()),
        (shown - written).as_secs_f64() * 1e3,
        apply / changes as f64 * 1e6,
        changes as f64 / apply,
    );
    Ok(())
}

/// Creates `count` allocations, numbered from `first`; returns the last revision.
async fn write(client: Client, first: u128, count: u128) -> Result<u64> {
    let job = service("web", 1);
    let writer = client.unfenced_writer();
    let mut last = 0;
    let mut number = first;
    while number < first + count {
        let mut txn = writer.txn();
        for number in number..(number + KEYS_PER_TXN).min(first + count) {
            let alloc = allocation(number, &job, NodeId::from_random(number % NODES));
            txn.add(&writes::create(&Key::Alloc(alloc.id), &alloc))?;
        }
        number += KEYS_PER_TXN;
        match writer.commit(&txn).await? {
            Commit::Done { revision } => last = revision,
            Commit::Conflict(conflict) => return Err(format!("{:?}", conflict.failed[0]).into()),
        }
    }
    Ok(last)
}
