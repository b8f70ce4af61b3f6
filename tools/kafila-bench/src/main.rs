//! Loads on a cluster of hollow nodes, measured.
//!
//! In reading order: [`args`] declares the command line and [`target`] connects to the cluster, which a
//! run may start for itself. [`hollow`] has the nodes. [`loads`] has one file for each load, which
//! works on a [`mod@bench`] and returns its [`outcome`]. [`sample`] reads CPU time and memory of processes,
//! [`report`] writes what was measured, with the [`plot`]s.

mod args;
mod bench;
mod hollow;
mod jobs;
mod loads;
mod outcome;
mod plot;
mod report;
mod sample;
mod stats;
mod target;

use std::process::ExitCode;

use clap::{CommandFactory as _, FromArgMatches as _};

fn main() -> ExitCode {
    let mut root = args::Cli::command();
    root.build();
    let line = kafila_cli::argv::normalise(std::env::args_os(), &root);
    let matches = args::Cli::command().get_matches_from(line.words);
    let cli = match args::Cli::from_arg_matches(&matches) {
        Ok(cli) => cli,
        Err(error) => error.exit(),
    };
    match run(&cli) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("Error: {error:#}");
            ExitCode::from(2)
        }
    }
}

/// Returns whether the run found no violation.
fn run(cli: &args::Cli) -> anyhow::Result<bool> {
    let runtime = tokio::runtime::Runtime::new()?;
    let is_good = runtime.block_on(Box::pin(loads::run(cli)));
    // Streams and reads that wait must not delay the exit.
    runtime.shutdown_background();
    is_good
}
