//! Benchmark of the suite: registrations per second, placements per second on simulated nodes, the time
//! from `job run` to the task's process, and the memory of each service.
//!
//! `cargo run --release -p integration-tests --bin bench-suite -- [embedded|etcd] [NODES] [COUNT]`
//!
//! Every service is a process of its own; the nodes are client-nodes in this process, which speak
//! the real node protocol and have the mock driver. Everything shares this machine's cores.

use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use futures::StreamExt as _;
use integration_tests::api::{Api, eventually};
use integration_tests::binary;
use integration_tests::load::{mock_batch, sleeper};
use integration_tests::suite::{Options, SERVICES, Suite};
use service_kit::CancellationToken;
use store_test_kit::TestStore;
use tokio::task::JoinSet;
use tokio::time::Instant;

const TIMEOUT: Duration = Duration::from_secs(300);

/// Registrations in flight: a few busy clients.
const CLIENTS: usize = 64;
const REGISTRATIONS: usize = 5_000;

/// Jobs in the measurement of the start time.
const TIMED_JOBS: usize = 200;

#[tokio::main]
async fn main() -> Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let store = words.first().map_or("embedded", String::as_str);
    let nodes = number(words.get(1), 1_000)?;
    let count = u32::try_from(number(words.get(2), 10_000)?)?;
    println!("| measure | {store} |");
    println!("| --- | --- |");
    let embedded = match store {
        "embedded" => Some(TestStore::start().await),
        "etcd" => None,
        other => bail!("{other} is not a store: want embedded or etcd"),
    };
    let endpoint = embedded.as_ref().map(|store| store.endpoint.clone());

    // The node with real processes comes first: its tasks must not wait behind ten thousand
    // placements.
    let options = Options {
        nodes: 1,
        store: endpoint.clone(),
        ..Options::default()
    };
    let suite = Suite::start(options).await?;
    let measured = async {
        time_processes(&suite).await?;
        time_registrations(&suite.api()?).await
    };
    measured.await.with_context(|| suite.log_tails())?;
    drop(suite);
    if let Some(store) = embedded {
        store.etcd.shutdown().await;
    }

    let embedded = match store {
        "embedded" => Some(TestStore::start().await),
        _ => None,
    };
    let endpoint = embedded.as_ref().map(|store| store.endpoint.clone());
    let suite = Suite::start(Options {
        nodes: 0,
        store: endpoint,
        ..Options::default()
    })
    .await?;
    print_memory(&suite, "at rest")?;
    let drain = CancellationToken::new();
    let mut simulated = simulate(&suite, nodes, &drain).await?;
    let measured = time_placements(&suite, nodes, count).await;
    measured.with_context(|| suite.log_tails())?;
    print_memory(&suite, &format!("{nodes} nodes, {count} allocations"))?;
    drain.cancel();
    while simulated.join_next().await.is_some() {}
    drop(suite);
    Ok(())
}

fn number(word: Option<&String>, default: usize) -> Result<usize> {
    word.map_or(Ok(default), |word| {
        word.parse()
            .with_context(|| format!("{word} is not a number"))
    })
}

/// From the start of `kafila job run` to the first instruction of the task, each job alone.
async fn time_processes(suite: &Suite) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let mut durations = Vec::new();
    for number in 0..TIMED_JOBS {
        let mark = folder.path().join(format!("mark-{number}"));
        let file = folder.path().join(format!("job-{number}.hcl"));
        std::fs::write(&file, marking_job(number, &mark.to_string_lossy()))?;
        let began = unix_nanos()?;
        let path = file.to_string_lossy().into_owned();
        binary::run(&suite.address(), &["job", "run", "-detach", &path])
            .await?
            .ok()?;
        let started = eventually(TIMEOUT, || async {
            let text = std::fs::read_to_string(&mark)?;
            Ok(text.trim().parse::<u64>()?)
        })
        .await?;
        durations.push(Duration::from_nanos(started.saturating_sub(began)));
    }
    durations.sort();
    let at =
        |per_cent: usize| durations[(durations.len() * per_cent / 100).min(durations.len() - 1)];
    println!(
        "| `job run` to process, p50 of {TIMED_JOBS} | {:.1} ms |",
        ms(at(50))
    );
    println!(
        "| `job run` to process, p99 of {TIMED_JOBS} | {:.1} ms |",
        ms(at(99))
    );
    Ok(())
}

/// A batch job whose task first writes the time.
fn marking_job(number: usize, mark: &str) -> String {
    format!(
        r#"job "timed-{number}" {{
  type = "batch"
  group "g" {{
    task "t" {{
      driver = "raw_exec"
      config {{
        command = "/bin/sh"
        args    = ["-c", "date +%s%N > {mark}.new && mv {mark}.new {mark}"]
      }}
    }}
  }}
}}
"#
    )
}

fn ms(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1_000.0
}

fn unix_nanos() -> Result<u64> {
    Ok(service_kit::Clock::real().now())
}

/// Measures acknowledged registrations of small jobs from several concurrent clients.
async fn time_registrations(api: &Api) -> Result<()> {
    let began = Instant::now();
    let registering = futures::stream::iter(0..REGISTRATIONS)
        .map(|number| async move {
            let job = sleeper(&format!("registered-{number}"), 0);
            api.register_surely(&job, "", TIMEOUT).await
        })
        .buffer_unordered(CLIENTS)
        .collect::<Vec<_>>()
        .await;
    let failed = registering.iter().filter(|answer| answer.is_err()).count();
    ensure!(failed == 0, "{failed} registrations failed");
    let rate = per_second(REGISTRATIONS, began.elapsed());
    println!("| registrations/s, {CLIENTS} clients | {rate:.0} |");
    Ok(())
}

fn per_second(count: usize, duration: Duration) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX)) / duration.as_secs_f64()
}

/// Starts client-nodes in this process and waits until they are ready.
async fn simulate(suite: &Suite, nodes: usize, drain: &CancellationToken) -> Result<JoinSet<()>> {
    let mut running = JoinSet::new();
    for number in 0..nodes {
        let config = client_node::Config {
            gateways: vec![suite.address()],
            name: Some(format!("simulated-{number}")),
            data_dir: None,
            tls: service_kit::TlsConfig::insecure(),
            ..client_node::Config::default()
        };
        let app = client_node::App::build(config).await?;
        let drain = drain.clone();
        running.spawn(async move {
            if let Err(error) = Box::pin(app.run(drain)).await {
                eprintln!("a simulated node: {error}");
            }
        });
    }
    let api = suite.api()?;
    eventually(TIMEOUT, || async {
        let ready = api
            .nodes()
            .await?
            .iter()
            .filter(|node| node.status == "ready")
            .count();
        ensure!(ready == nodes, "{ready} of {nodes} nodes are ready");
        Ok(())
    })
    .await?;
    Ok(running)
}

/// Measures one large batch job: from its registration to the last committed placement, and to the
/// last task reported as running.
async fn time_placements(suite: &Suite, nodes: usize, count: u32) -> Result<()> {
    let api = suite.api()?;
    let began = Instant::now();
    api.register_surely(&mock_batch("many", count), "many", TIMEOUT)
        .await?;
    let placed = reach(&api, count, |summary| summary.starting + summary.running).await? - began;
    let running = reach(&api, count, |summary| summary.running).await? - began;
    let rate = per_second(count as usize, placed);
    println!(
        "| {count} placements on {nodes} nodes | {:.2} s, {rate:.0}/s |",
        placed.as_secs_f64()
    );
    let rate = per_second(count as usize, running);
    println!(
        "| … until the last is reported running | {:.2} s, {rate:.0}/s |",
        running.as_secs_f64()
    );
    Ok(())
}

/// Prints the resident memory of every service.
fn print_memory(suite: &Suite, when: &str) -> Result<()> {
    for name in SERVICES {
        let process = suite.process(name).context("the suite has every service")?;
        let mib = process.resident_kib()? / 1_024;
        println!("| memory of {name}, {when} | {mib} MiB |");
    }
    Ok(())
}

async fn reach(
    api: &Api,
    count: u32,
    measure: impl Fn(&proto::v1::TaskGroupSummary) -> u32,
) -> Result<Instant> {
    eventually(TIMEOUT, || async {
        let summary = api.job("many").await?.summary.context("no summary")?;
        let reached: u32 = summary.task_groups.values().map(&measure).sum();
        ensure!(reached == count, "{reached} of {count}");
        Ok(Instant::now())
    })
    .await
}
