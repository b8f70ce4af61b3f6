//! Benchmark: puts, txns of 512 keys with watchers, and reading 100,000 keys.
//!
//! ```text
//! cargo run --release -p embedded-etcd --example bench -- [memory|disk|disk-none|URL of an etcd]...
//! ```
//! Without arguments: memory, then disk. In process for the embedded store; over TCP for an etcd,
//! which must allow txns of 512 operations.

use std::{sync::Arc, time::Duration};

use anyhow::{Context, Result};
use embedded_etcd::{Config, Durability, EmbeddedEtcd, Storage};
use etcd_client::{Channel, Client, GetOptions, KvClient, Txn, TxnOp, WatchOptions};
use tokio::{sync::Semaphore, task::JoinSet, time::Instant};

/// Bytes of a value, as Kafila's allocations have.
const VALUE_BYTES: usize = 300;

/// Keys of one txn.
const TXN_KEYS: usize = 512;

/// Keys that are read.
const KEYS: usize = 100_000;

#[tokio::main]
async fn main() -> Result<()> {
    let mut targets: Vec<String> = std::env::args().skip(1).collect();
    if targets.is_empty() {
        targets = vec!["memory".to_owned(), "disk".to_owned()];
    }
    for target in targets {
        println!("## {target}");
        let directory = tempfile::tempdir()?;
        let on_disk = |durability| Config {
            storage: Storage::Disk {
                path: directory.path().join("store"),
                durability,
            },
            ..Config::default()
        };
        let config = match target.as_str() {
            "memory" => Config::in_memory(),
            "disk" => on_disk(Durability::Immediate),
            "disk-none" => on_disk(Durability::None),
            url => {
                bench(Client::connect([url], None).await?).await?;
                continue;
            }
        };
        let store = EmbeddedEtcd::start(config).await?;
        bench(Client::from_channel(Channel::Tonic(store.channel()), None).await?).await?;
        store.shutdown().await;
    }
    Ok(())
}

async fn bench(client: Client) -> Result<()> {
    for (in_flight, puts) in [(1, 5_000), (16, 30_000), (256, 60_000)] {
        bench_puts(&client, in_flight, puts).await?;
    }
    for watchers in [0, 1, 4, 10] {
        bench_txns(&client, watchers).await?;
    }
    for page in [100, 1_000, 10_000] {
        bench_range(&client, page).await?;
    }
    Ok(())
}

async fn bench_puts(client: &Client, in_flight: usize, puts: usize) -> Result<()> {
    let permits = Arc::new(Semaphore::new(in_flight));
    let mut latencies = Vec::with_capacity(puts);
    let mut running = JoinSet::new();
    let started = Instant::now();
    for number in 0..puts {
        let permit = Arc::clone(&permits).acquire_owned().await?;
        let mut kv = client.kv_client();
        running.spawn(async move {
            let started = Instant::now();
            let key = format!("put/{:06}", number % 20_000);
            let result = kv.put(key, vec![b'x'; VALUE_BYTES], None).await;
            drop(permit);
            result.map(|_| started.elapsed())
        });
        while let Some(done) = running.try_join_next() {
            latencies.push(done??);
        }
    }
    while let Some(done) = running.join_next().await {
        latencies.push(done??);
    }
    let rate = per_second(puts, started.elapsed());
    let (p50, p99) = percentiles(latencies);
    println!("put, {in_flight:>3} in flight: {rate:>9.0}/s, p50 {p50:?}, p99 {p99:?}");
    Ok(())
}

/// Writes the keys that [`bench_range`] reads.
async fn bench_txns(client: &Client, watchers: usize) -> Result<()> {
    const IN_FLIGHT: usize = 4;
    let mut watching = JoinSet::new();
    for _ in 0..watchers {
        let options = WatchOptions::new().with_prefix();
        let mut watch = client.watch_client().watch("txn/", Some(options)).await?;
        watching.spawn(async move {
            let mut events = 0;
            while events < KEYS {
                let message = watch.message().await?.context("the watch ended")?;
                events += message.events().len();
            }
            anyhow::Ok(())
        });
    }
    let permits = Arc::new(Semaphore::new(IN_FLIGHT));
    let mut running = JoinSet::new();
    let mut latencies = Vec::new();
    let started = Instant::now();
    for first in (0..KEYS).step_by(TXN_KEYS) {
        let permit = Arc::clone(&permits).acquire_owned().await?;
        let mut kv = client.kv_client();
        running.spawn(async move {
            let started = Instant::now();
            let keys = first..KEYS.min(first + TXN_KEYS);
            let put = |key| TxnOp::put(format!("txn/{key:08}"), vec![b'x'; VALUE_BYTES], None);
            let ops: Vec<TxnOp> = keys.map(put).collect();
            let result = kv.txn(Txn::new().and_then(ops)).await;
            drop(permit);
            result.map(|_| started.elapsed())
        });
    }
    while let Some(done) = running.join_next().await {
        latencies.push(done??);
    }
    let rate = per_second(KEYS, started.elapsed());
    while let Some(done) = watching.join_next().await {
        done??;
    }
    let rate_watched = per_second(KEYS, started.elapsed());
    let (p50, p99) = percentiles(latencies);
    println!(
        "txn of {TXN_KEYS}, {watchers:>2} watchers: {rate:>9.0} keys/s written, \
         {rate_watched:>9.0} keys/s seen by all, p50 {p50:?}, p99 {p99:?}"
    );
    Ok(())
}

async fn bench_range(client: &Client, page: i64) -> Result<()> {
    let mut kv: KvClient = client.kv_client().max_decoding_message_size(usize::MAX);
    let started = Instant::now();
    let (mut key, mut read) = (b"txn/".to_vec(), 0);
    loop {
        let options = GetOptions::new().with_range("txn0").with_limit(page);
        let response = kv.get(key, Some(options)).await?;
        read += response.kvs().len();
        let Some(last) = response.kvs().last().filter(|_| response.more()) else {
            break;
        };
        key = last.key().to_vec();
        key.push(0);
    }
    let took = started.elapsed();
    println!("range of {read} keys in pages of {page}: {took:?}");
    Ok(())
}

fn percentiles(mut latencies: Vec<Duration>) -> (Duration, Duration) {
    latencies.sort();
    let at = |percent: usize| latencies[(latencies.len() - 1) * percent / 100];
    (at(50), at(99))
}

#[expect(
    clippy::cast_precision_loss,
    reason = "a rate is shown to the nearest whole"
)]
fn per_second(count: usize, took: Duration) -> f64 {
    count as f64 / took.as_secs_f64()
}
