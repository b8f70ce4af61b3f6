//! `simulation one` plays one seed; `simulation run` plays many, each in a process of its own.

mod machine;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use simulation::clock;
use simulation::trial::Trial;

mod driver;

/// What the line begins with that holds a seed's sums.
const SUMS: &str = "sums: ";

#[derive(Parser)]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Plays one seed, and prints what came of it.
    One {
        #[arg(long)]
        seed: u64,
        #[command(flatten)]
        options: Options,
        /// Prints every write and every fault.
        #[arg(long)]
        verbose: bool,
        /// Prints what it comes to for `run` to add up.
        #[arg(long, hide = true)]
        sums: bool,
    },
    /// Plays many seeds, and prints those that fail.
    Run {
        /// The first seed.
        #[arg(long, default_value_t = 0)]
        from: u64,
        /// How many; without it, until the time is over.
        #[arg(long)]
        seeds: Option<u64>,
        /// How long to go on, in seconds.
        #[arg(long)]
        seconds: Option<u64>,
        /// How many at once; by default one a core.
        #[arg(long)]
        jobs: Option<usize>,
        /// Stop after so many that failed.
        #[arg(long, default_value_t = 10)]
        failures: usize,
        /// Play each seed twice: both must write the same.
        #[arg(long)]
        twice: bool,
        #[command(flatten)]
        options: Options,
    },
}

#[derive(Clone, clap::Args)]
struct Options {
    /// How long users ask and things break, in simulated milliseconds.
    #[arg(long, default_value_t = 20_000)]
    length: u64,
    /// Nothing breaks.
    #[arg(long)]
    calm: bool,
}

fn main() -> ExitCode {
    // Before anything asks for the time or a random number.
    let words: Vec<String> = std::env::args().collect();
    let seed = words
        .iter()
        .position(|word| word == "--seed")
        .and_then(|position| words.get(position + 1)?.parse().ok());
    if let (Some("one"), Some(seed)) = (words.get(1).map(String::as_str), seed) {
        clock::begin(seed);
    }
    match Args::parse().command {
        Command::One {
            seed,
            options,
            verbose,
            sums,
        } => one(seed, &options, verbose, sums),
        Command::Run {
            from,
            seeds,
            seconds,
            jobs,
            failures,
            twice,
            options,
        } => {
            let run = driver::Run {
                from,
                seeds,
                seconds,
                jobs,
                failures,
                twice,
                options,
            };
            run.play()
        }
    }
}

fn one(seed: u64, options: &Options, is_verbose: bool, is_summed: bool) -> ExitCode {
    if let Ok(filter) = std::env::var("KAFILA_LOG") {
        tracing_subscriber::fmt()
            .with_env_filter(filter)
            .with_ansi(false)
            .init();
    }
    let trial = Trial {
        seed,
        length: options.length,
        is_calm: options.calm,
        is_verbose,
    };
    let verdict = trial.play();
    for violation in &verdict.violations {
        println!("violation: {violation}");
    }
    println!(
        "seed {seed}: {:016x}, {} revisions, {} ms, {} of {} requests acknowledged, {} violations",
        verdict.fingerprint,
        verdict.revisions,
        verdict.took,
        verdict.acknowledged,
        verdict.requests,
        verdict.violations.len()
    );
    if is_summed {
        match serde_json::to_string(&verdict.sums) {
            Ok(sums) => println!("{SUMS}{sums}"),
            Err(error) => println!("{error}"),
        }
    }
    match verdict.violations.is_empty() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}
