//! Fault test of a cluster of real processes under a workload, with a report.
//!
//! `sudo target/release/faults --minutes 10 --seed 7 --json report.json` makes a run;
//! `target/release/faults --sum report-1.json report-2.json` adds up the measurements of several.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Parser;
use integration_tests::faults::report::{Report, table};
use integration_tests::faults::schedule::{Kind, ScheduleOptions};
use integration_tests::faults::{Options, run};

/// Fault test: three members of etcd, two of every service and three nodes on separate hosts (network
/// namespaces, so this needs root).
#[derive(Debug, Parser)]
struct Arguments {
    /// Length of the workload.
    #[arg(long, default_value_t = 10.0)]
    minutes: f64,
    /// Decides faults and workload; random by default.
    #[arg(long)]
    seed: Option<u64>,
    /// Requests a second.
    #[arg(long, default_value_t = 20)]
    rate: u32,
    /// Only this kind of fault; may be given several times.
    #[arg(long, value_name = "KIND", value_parser = kind)]
    only: Vec<Kind>,
    /// Duration of a pause of a process, in seconds.
    #[arg(long, default_value_t = 30)]
    pause: u64,
    /// Directory to keep the processes' logs in.
    #[arg(long, value_name = "DIR")]
    keep_logs: Option<PathBuf>,
    /// Writes the report here as well, as JSON.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Adds up these reports instead of making a run.
    #[arg(long, value_name = "FILE", num_args = 1.., conflicts_with = "json")]
    sum: Vec<PathBuf>,
}

fn kind(name: &str) -> Result<Kind, String> {
    let names: Vec<&str> = Kind::ALL.iter().map(|kind| kind.name()).collect();
    Kind::from_name(name).ok_or_else(|| format!("want one of {}", names.join(", ")))
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    if !arguments.sum.is_empty() {
        return add_up(&arguments.sum);
    }
    let options = Options {
        schedule: ScheduleOptions {
            seed: arguments.seed.unwrap_or_else(rand::random),
            length: Duration::from_secs_f64(arguments.minutes * 60.0),
            pause: Duration::from_secs(arguments.pause),
            kinds: arguments.only,
        },
        rate: arguments.rate,
        keep_logs: arguments.keep_logs,
    };
    let report = run(&options).with_context(|| format!("seed {}", options.schedule.seed))?;
    println!("\n{report}");
    if let Some(path) = arguments.json {
        let text = serde_json::to_string_pretty(&report.json())?;
        std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    if !report.is_good() {
        bail!("seed {}: the run found failures", report.seed);
    }
    Ok(())
}

fn add_up(paths: &[PathBuf]) -> Result<()> {
    let mut faults = Vec::new();
    for path in paths {
        let text = std::fs::read_to_string(path)
            .with_context(|| format!("cannot read {}", path.display()))?;
        let report = serde_json::from_str(&text)
            .with_context(|| format!("{} is not a report", path.display()))?;
        faults.extend(Report::faults_of(&report));
    }
    print!("{}", table(&faults));
    Ok(())
}
