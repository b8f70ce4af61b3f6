//! Test of the images and of docker-compose.yml, with Docker.
//!
//! `scripts/check-containers` makes a full run, with two programs; `-- --short` is the run of CI.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use clap::{Parser, Subcommand};
use integration_tests::containers::command::missing_requirement;
use integration_tests::containers::stand_in;
use integration_tests::containers::trial::{self, Options, Part};

/// Starts the stack of docker-compose.yml, runs jobs, scales, kills, cuts off and upgrades services,
/// and removes everything.
#[derive(Debug, Parser)]
#[command(args_conflicts_with_subcommands = true)]
struct Arguments {
    /// One kill of each service, and no loss of state.
    #[arg(long)]
    short: bool,
    /// The `kafila` program for the images; by default the one of this build.
    #[arg(long, value_name = "FILE")]
    binary: Option<PathBuf>,
    /// The program that replaces it in the upgrade (scripts/second-binary makes one). Without it, the short run
    /// upgrades to the same program under another revision.
    #[arg(long, value_name = "FILE", required_unless_present_any = ["short", "only", "from_source"])]
    second: Option<PathBuf>,
    /// Only the quick start of the README, with images that Docker compiles from the sources: takes long.
    #[arg(long)]
    from_source: bool,
    /// Only these parts of the run; the stack is started for each but the quick start.
    #[arg(
        long,
        value_name = "PARTS",
        value_delimiter = ',',
        conflicts_with = "from_source"
    )]
    only: Vec<Part>,
    /// Decides the workload; random by default.
    #[arg(long)]
    seed: Option<u64>,
    #[command(subcommand)]
    command: Option<Command>,
}

/// The part of this program within the stack.
#[derive(Debug, Subcommand)]
enum Command {
    /// Stands in for the OpenTelemetry collector.
    Collector {
        #[arg(long, value_name = "FILE")]
        config: PathBuf,
    },
}

#[tokio::main]
async fn main() -> Result<()> {
    let arguments = Arguments::parse();
    if let Some(Command::Collector { config }) = arguments.command {
        return stand_in::serve(&config).await;
    }
    if let Some(missing) = missing_requirement().await {
        if trial::is_required() {
            bail!("{missing}");
        }
        eprintln!("\n*** SKIPPED: the container tests did not run: {missing}\n");
        return Ok(());
    }
    if arguments.from_source {
        let begun = tokio::time::Instant::now();
        trial::start_quickly(None).await?;
        println!(
            "the quick start passed, compiled from the sources, in {:.0} s",
            begun.elapsed().as_secs_f64()
        );
        return Ok(());
    }
    let options = Options {
        second: arguments.second,
        binary: arguments.binary.unwrap_or_else(trial::default_binary),
        is_short: arguments.short,
        only: arguments.only,
        seed: arguments.seed.unwrap_or_else(rand::random),
    };
    trial::check_binary(&options.binary)?;
    if let Some(second) = &options.second {
        trial::check_binary(second)?;
    }
    println!("seed {}", options.seed);
    trial::run(&options)
        .await
        .with_context(|| format!("seed {}", options.seed))?;
    println!("container tests passed");
    Ok(())
}
