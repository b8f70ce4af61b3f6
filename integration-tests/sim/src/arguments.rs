//! Command line of the simulation.

use clap::{Parser, Subcommand};
use simulation::script::Script;

/// Prefix of the line with a seed's totals.
pub(crate) const TOTALS: &str = "totals: ";

#[derive(Parser)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Plays one seed and prints the result.
    One {
        #[arg(long)]
        seed: u64,
        #[command(flatten)]
        options: Options,
        /// Prints every write and every fault.
        #[arg(long)]
        verbose: bool,
        /// Prints the totals for `run` to add up.
        #[arg(long, hide = true)]
        totals: bool,
    },
    /// Plays many seeds and prints the failing ones.
    Run {
        /// The first seed.
        #[arg(long, default_value_t = 0)]
        from: u64,
        /// Number of seeds; default: until the time is over.
        #[arg(long)]
        seeds: Option<u64>,
        /// Time limit, in seconds.
        #[arg(long)]
        seconds: Option<u64>,
        /// Parallel seeds; default: one per core.
        #[arg(long)]
        jobs: Option<usize>,
        /// Stop after this many failures.
        #[arg(long, default_value_t = 10)]
        failures: usize,
        /// Play each seed twice and compare the output.
        #[arg(long)]
        twice: bool,
        #[command(flatten)]
        options: Options,
    },
}

#[derive(Clone, clap::Args)]
pub(crate) struct Options {
    /// Length of workload and faults, in simulated milliseconds.
    #[arg(long, default_value_t = 20_000)]
    pub(crate) length: u64,
    /// No faults.
    #[arg(long)]
    pub(crate) calm: bool,
    /// These faults instead of random ones; no node may go down. Plays for 30,000 ms or longer to see
    /// the end of them.
    #[arg(long, conflicts_with = "calm")]
    pub(crate) script: Option<Script>,
}
