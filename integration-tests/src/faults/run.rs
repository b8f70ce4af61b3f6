//! One run, from the first process to the verdict.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{Instant, sleep, sleep_until};

use super::cluster::Cluster;
use super::hosts;
use super::inject::{self, Undo};
use super::network::Network;
use super::recorder::Recorder;
use super::report::{PastFault, Report, measure};
use super::schedule::{Planned, ScheduleOptions, schedule};
use super::verdict;
use super::workload::Workload;
use crate::api::{Api, eventually};

/// Timeout of the start on a busy machine.
const START_TIMEOUT: Duration = Duration::from_secs(120);
/// Interval of the status lines.
const STATUS_INTERVAL: Duration = Duration::from_secs(5);

/// Options of a run.
#[derive(Clone, Debug)]
pub struct Options {
    pub schedule: ScheduleOptions,
    /// Requests a second.
    pub rate: u32,
    /// Directory of the logs; `None`: they are removed.
    pub keep_logs: Option<PathBuf>,
}

/// Runs cluster, workload and faults in a network of its own.
///
/// # Errors
/// The cluster did not start, or the run was interrupted. Failures that the run found are in the
/// report.
pub fn run(options: &Options) -> Result<Report> {
    let network = Network::create(hosts::all())?;
    // Before other threads start, so that all of them are on the workload's host.
    network.enter(hosts::USER)?;
    let scratch = tempfile::Builder::new()
        .prefix("kafila-faults-")
        .tempdir()?;
    let directory = options
        .keep_logs
        .clone()
        .unwrap_or_else(|| scratch.path().to_owned());
    let mut cluster = Cluster::new(network, &directory)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        tokio::select! {
            report = play(&mut cluster, options) => report,
            () = shutdown_signal() => bail!("interrupted"),
        }
    })
}

async fn shutdown_signal() {
    let mut terminated = signal(SignalKind::terminate()).ok();
    let terminated = async {
        match &mut terminated {
            Some(signal) => drop(signal.recv().await),
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        () = terminated => {}
    }
}

async fn play(cluster: &mut Cluster, options: &Options) -> Result<Report> {
    let faults = schedule(&options.schedule);
    ensure!(
        !faults.is_empty(),
        "no fault fits into {:?}: ask for more minutes",
        options.schedule.length
    );
    println!(
        "seed {}: {} faults in {:?}",
        options.schedule.seed,
        faults.len(),
        options.schedule.length
    );
    for fault in &faults {
        let (at, lasts) = (fault.at.as_secs_f64(), fault.lasts.as_secs_f64());
        println!("  at {at:>5.1}s for {lasts:>4.1}s: {}", fault.kind);
    }
    cluster.start_all()?;
    wait_until_ready(cluster).await?;
    println!("the cluster is ready");

    let began = Instant::now();
    let recorder = Recorder::start(&cluster.stores(), began).await?;
    let users = Workload::new(&cluster.gateways(), began)?;
    let mut problems = Vec::new();
    let happened = {
        let acting = users.act(options.schedule.seed, options.rate);
        let status = print_status(began, &recorder, &users);
        let injecting = inject_faults(
            cluster,
            &faults,
            options.schedule.length,
            began,
            &recorder,
            &mut problems,
        );
        tokio::select! {
            () = acting => bail!("the workload ended unexpectedly"),
            () = status => bail!("the status lines ended unexpectedly"),
            happened = injecting => happened?,
        }
    };
    println!(
        "the workload ends; {} requests are in flight",
        users.under_way()
    );
    users.finish().await;
    let left = Instant::now();
    if let Err(error) = verdict::await_rest(&recorder).await {
        problems.push(format!("{error:#}"));
    }
    let settled_ms = u64::try_from(left.elapsed().as_millis())?;
    users.read_all().await;
    let seen = users.seen().clone();
    let mut findings = verdict::look(&cluster.stores(), &recorder, &seen).await?;
    findings.wrong.extend(problems);
    let recorded = recorder.recorded();
    Ok(Report {
        seed: options.schedule.seed,
        minutes: options.schedule.length.as_secs_f64() / 60.0,
        rate: options.rate,
        faults: happened
            .iter()
            .map(|fault| measure(fault, &seen, &recorded))
            .collect(),
        findings,
        attempts: seen.attempts,
        attempts_failed: seen.attempts_failed,
        given_up: seen.given_up.len(),
        not_asked: seen.not_asked,
        stale_reads: seen.stale.len(),
        stale_reads_failed: seen.stale.iter().filter(|(_, answered)| !answered).count(),
        elections: recorded.elections.len(),
        settled_ms,
    })
}

/// Injects and reverses every fault. Unexpected ends of processes are problems.
async fn inject_faults(
    cluster: &mut Cluster,
    faults: &[Planned],
    length: Duration,
    began: Instant,
    recorder: &Recorder,
    problems: &mut Vec<String>,
) -> Result<Vec<PastFault>> {
    let now = || u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX);
    let mut happened = Vec::<PastFault>::new();
    for fault in faults {
        sleep_until(began + fault.at).await;
        let start = now();
        if let Some(before) = happened.last_mut() {
            before.until = start;
        }
        let snapshot = recorder.snapshot();
        let (mut what, undo) = inject::begin(cluster, fault, &snapshot).await?;
        println!("{:>6.1}s  {} {what}", seconds(start), fault.kind);
        let may_end = match &undo {
            Undo::FreeDisk(member) => Some(member.clone()),
            _ => None,
        };
        sleep_until(began + fault.at + fault.lasts).await;
        for host in cluster.ended() {
            if Some(&host) != may_end.as_ref() {
                problems.push(format!(
                    "{host} ended by itself:\n{}",
                    cluster.log_tail(&host)
                ));
                cluster.start(&host)?;
            }
        }
        let end = now();
        if let Some(addition) = inject::end(cluster, undo).await? {
            what = format!("{what}; {addition}");
        }
        println!("{:>6.1}s  {} is over", seconds(end), fault.kind);
        happened.push(PastFault {
            kind: fault.kind,
            what,
            began: start,
            ended: end,
            until: u64::MAX,
        });
    }
    sleep_until(began + length).await;
    if let Some(last) = happened.last_mut() {
        last.until = now();
    }
    Ok(happened)
}

/// Prints a status line every few seconds.
async fn print_status(began: Instant, recorder: &Recorder, users: &Workload) {
    let (mut answered, mut placed) = (0, 0);
    loop {
        sleep(STATUS_INTERVAL).await;
        let (records, given_up) = {
            let seen = users.seen();
            let known = seen
                .records
                .iter()
                .filter(|record| record.operation.completed.is_some());
            (known.count(), seen.given_up.len())
        };
        let (last, now_placed, wrong) = {
            let recorded = recorder.recorded();
            (
                recorded.last(),
                recorded.placed,
                recorded.violations().len(),
            )
        };
        let every = STATUS_INTERVAL.as_secs();
        println!(
            "{:>6.1}s  {:>3}/s answered, {:>3}/s placed, {:>3} in flight, {given_up} given up, \
             revision {last}, {wrong} wrong",
            began.elapsed().as_secs_f64(),
            (records - answered) as u64 / every,
            (now_placed - placed) as u64 / every,
            users.under_way(),
        );
        (answered, placed) = (records, now_placed);
    }
}

async fn wait_until_ready(cluster: &Cluster) -> Result<()> {
    for gateway in cluster.gateways() {
        let api = Api::new(&gateway)?;
        eventually(START_TIMEOUT, || async {
            let nodes = api.nodes().await?;
            let ready = nodes.iter().filter(|node| node.status == "ready").count();
            ensure!(
                ready == hosts::NODES,
                "{ready} of {} nodes ready",
                hosts::NODES
            );
            let leaders = api.leaders().await?;
            ensure!(leaders.len() >= 4, "only {:?} lead", leaders.keys());
            Ok(())
        })
        .await
        .context("the cluster did not become ready")?;
    }
    Ok(())
}

#[expect(clippy::cast_precision_loss, reason = "seconds of minutes, for people")]
fn seconds(micros: u64) -> f64 {
    micros as f64 / 1_000_000.0
}
