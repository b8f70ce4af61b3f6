//! The report of a run, in Markdown.

use std::fmt::Write as _;
use std::process::Command;

use crate::args::Cli;
use crate::bench::{Bench, SELF};
use crate::outcome::Outcome;
use crate::plot::{Series, svg};
use crate::sample::{Sample, Usage};

/// A finished report.
pub(crate) struct Report {
    pub(crate) text: String,
    /// File name without extension, and picture.
    pub(crate) plots: Vec<(&'static str, String)>,
    pub(crate) violations: Vec<String>,
}

impl Report {
    /// Writes the report. `outcome` is `None` if the load did not get on.
    pub(crate) async fn of(cli: &Cli, bench: &Bench, outcome: Option<Outcome>) -> Self {
        let mut text = format!("# kafila-bench {}\n\n", cli.load.name());
        machine(&mut text, cli);
        if let Some(outcome) = &outcome {
            costs(&mut text, bench, outcome);
            times(&mut text, outcome);
        }
        memory(&mut text, bench);
        store(&mut text, bench).await;
        let violations = oracles(&mut text, bench);
        Self {
            text,
            plots: plots(bench),
            violations,
        }
    }
}

fn row(text: &mut String, name: &str, value: impl std::fmt::Display) {
    let _ = writeln!(text, "| {name} | {value} |");
}

fn machine(text: &mut String, cli: &Cli) {
    text.push_str("| run | |\n|---|---|\n");
    let cpus = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpus
        .lines()
        .find_map(|line| line.strip_prefix("model name"));
    let model = model.map_or("unknown", |value| {
        value.trim_start_matches([' ', '\t', ':'])
    });
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    row(text, "machine", format!("{cores} × {model}"));
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    row(text, "kernel", kernel.trim());
    row(text, "load average", load_average());
    row(
        text,
        "commit",
        output("git", &["describe", "--always", "--dirty"]),
    );
    row(text, "kafila-bench", env!("CARGO_PKG_VERSION"));
    if cli.common.suite {
        row(text, "etcd", output("etcd", &["--version"]));
    }
    let words: Vec<String> = std::env::args().skip(1).collect();
    row(text, "options", format!("`{}`", words.join(" ")));
    text.push('\n');
}

fn load_average() -> String {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').take(3).collect::<Vec<_>>().join(" ")
}

/// Returns the first line that a program prints.
fn output(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output();
    let text = output
        .ok()
        .map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    let line = text.and_then(|text| text.lines().next().map(str::to_owned));
    line.unwrap_or_else(|| "unknown".to_owned())
}

/// CPU time of each process between two samples, in µs; `None`: it ended meanwhile.
fn spent(period: &(Sample, Sample)) -> impl Iterator<Item = Option<u64>> {
    let pairs = period.0.usages.iter().zip(&period.1.usages);
    pairs.map(|(before, after)| match (before, after) {
        (Some(before), Some(after)) => Some(after.cpu_micros.saturating_sub(before.cpu_micros)),
        _ => None,
    })
}

fn costs(text: &mut String, bench: &Bench, outcome: &Outcome) {
    let (unit, count) = (outcome.unit, outcome.count.max(1));
    let wall = outcome.period.1.at.saturating_sub(outcome.period.0.at);
    let _ = writeln!(
        text,
        "## CPU time\n\n{count} × {unit}, in {:.2} s.\n",
        wall.as_secs_f64()
    );
    let _ = writeln!(
        text,
        "| process | CPU µs per {unit} | CPU s |\n|---|--:|--:|"
    );
    let mut rows = String::new();
    let mut sum = 0;
    for (process, spent) in bench.processes.iter().zip(spent(&outcome.period)) {
        let name = &process.name;
        let Some(micros) = spent else {
            let _ = writeln!(rows, "| {name} | ended | |");
            continue;
        };
        let is_own = name == SELF;
        if !is_own {
            sum += micros;
        }
        let name = if is_own {
            "(kafila-bench and its nodes)"
        } else {
            name
        };
        let _ = writeln!(
            rows,
            "| {name} | {} | {} |",
            each(micros, count),
            seconds(micros)
        );
    }
    if bench.processes.len() > 1 {
        let _ = writeln!(
            text,
            "| **sum** | **{}** | **{}** |",
            each(sum, count),
            seconds(sum)
        );
    }
    text.push_str(&rows);
    text.push('\n');
}

#[expect(clippy::cast_precision_loss, reason = "for people")]
fn each(micros: u64, count: u64) -> String {
    format!("{:.1}", micros as f64 / count as f64)
}

#[expect(clippy::cast_precision_loss, reason = "for people")]
fn seconds(micros: u64) -> String {
    format!("{:.2}", micros as f64 / 1e6)
}

fn times(text: &mut String, outcome: &Outcome) {
    text.push_str("## Times\n\n| measure | |\n|---|--:|\n");
    for (name, value) in &outcome.measures {
        row(text, name, value);
    }
    text.push('\n');
}

fn memory(text: &mut String, bench: &Bench) {
    text.push_str("## Memory\n\n| process | peak MiB | at the end MiB |\n|---|--:|--:|\n");
    let end = bench.mark();
    for (process, usage) in bench.processes.iter().zip(&end.usages) {
        let mib = |usage: Usage| {
            format!(
                "{} | {}",
                usage.peak_kib / 1_024,
                usage.resident_kib / 1_024
            )
        };
        let value = usage.map_or_else(|| "ended | ".to_owned(), mib);
        row(text, &process.name, value);
    }
    text.push('\n');
    let (before, after) = bench.own_kib;
    if let Some(fleet) = bench.hollow() {
        let nodes = u64::from(fleet.size().max(1));
        #[expect(clippy::cast_precision_loss, reason = "for people")]
        let each = after.saturating_sub(before) as f64 / nodes as f64;
        let _ = writeln!(
            text,
            "{nodes} hollow nodes without allocations: {each:.1} KiB each, with their connections.\n"
        );
    }
}

async fn store(text: &mut String, bench: &Bench) {
    let Some(suite) = &bench.target.suite else {
        return;
    };
    let Ok(metrics) = suite.etcd_metrics().await else {
        return;
    };
    text.push_str("## etcd\n\n| measure | |\n|---|--:|\n");
    for (name, key) in [
        ("size, MiB", "etcd_mvcc_db_total_size_in_bytes"),
        ("in use, MiB", "etcd_mvcc_db_total_size_in_use_in_bytes"),
    ] {
        let value = metrics
            .lines()
            .find_map(|line| line.strip_prefix(key)?.strip_prefix(' '));
        if let Some(bytes) = value.and_then(|value| value.trim().parse::<f64>().ok()) {
            row(text, name, format!("{:.1}", bytes / f64::from(1 << 20)));
        }
    }
    text.push('\n');
}

fn oracles(text: &mut String, bench: &Bench) -> Vec<String> {
    text.push_str("## Checks\n\n");
    let Some(fleet) = bench.hollow() else {
        text.push_str("None: the nodes are the cluster's own.\n");
        return Vec::new();
    };
    let registry = fleet.registry();
    let (progress, violations) = (&registry.progress, registry.violations.clone());
    text.push_str("| check | |\n|---|--:|\n");
    row(text, "nodes declared down", progress.downs);
    row(text, "allocations of living nodes lost", progress.lost);
    row(
        text,
        "longest delay of a heartbeat by this process",
        format!("{:?}", fleet.lag()),
    );
    row(text, "violations", violations.len());
    text.push('\n');
    for violation in &violations {
        let _ = writeln!(text, "- {violation}");
    }
    violations
}

fn plots(bench: &Bench) -> Vec<(&'static str, String)> {
    let samples = bench.samples();
    let over_time = |value: &dyn Fn(&Sample, usize) -> Option<f64>| {
        let processes = bench.processes.iter().enumerate();
        let series = processes.map(|(position, process)| Series {
            name: process.name.clone(),
            points: samples
                .iter()
                .filter_map(|sample| Some((sample.at.as_secs_f64(), value(sample, position)?)))
                .collect(),
        });
        series.collect::<Vec<_>>()
    };
    #[expect(clippy::cast_precision_loss, reason = "for a picture")]
    let resident = |sample: &Sample, position: usize| {
        Some(sample.usages[position]?.resident_kib as f64 / 1_024.0)
    };
    #[expect(clippy::cast_precision_loss, reason = "for a picture")]
    let cpu =
        |sample: &Sample, position: usize| Some(sample.usages[position]?.cpu_micros as f64 / 1e6);
    #[expect(clippy::cast_precision_loss, reason = "for a picture")]
    let counted = |name: &str, value: &dyn Fn(&Sample) -> u64| Series {
        name: name.to_owned(),
        points: samples
            .iter()
            .map(|sample| (sample.at.as_secs_f64(), value(sample) as f64))
            .collect(),
    };
    let progress = [
        counted("placed", &|sample| sample.assigned),
        counted("running", &|sample| sample.reported),
    ];
    let mut plots = vec![
        (
            "cpu",
            svg(
                "CPU seconds since the start of the process",
                &over_time(&cpu),
            ),
        ),
        ("memory", svg("Resident memory, MiB", &over_time(&resident))),
    ];
    if bench.hollow().is_some() {
        plots.push(("progress", svg("Allocations", &progress)));
    }
    plots
}
