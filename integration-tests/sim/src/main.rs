//! `simulation one` plays one seed; `simulation run` plays many, each in a process of its own.

mod arguments;
mod batch;
mod machine;

use std::process::ExitCode;

use clap::Parser as _;
use simulation::clock;
use simulation::trial::Trial;

use arguments::{Args, Command, Options, TOTALS};

fn main() -> ExitCode {
    // Before the first use of a clock or random number.
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
            totals,
        } => one(seed, &options, verbose, totals),
        Command::Run {
            from,
            seeds,
            seconds,
            jobs,
            failures,
            twice,
            options,
        } => {
            let batch = batch::Batch {
                from,
                seeds,
                seconds,
                jobs,
                failures,
                twice,
                options,
            };
            batch.play()
        }
    }
}

fn one(seed: u64, options: &Options, is_verbose: bool, prints_totals: bool) -> ExitCode {
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
        script: options.script,
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
    if prints_totals {
        match serde_json::to_string(&verdict.totals) {
            Ok(totals) => println!("{TOTALS}{totals}"),
            Err(error) => println!("{error}"),
        }
    }
    match verdict.violations.is_empty() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}
