//! Kills parts of one node at random instants, and checks after each kill that its tasks run, once.
//!
//! `sudo target/debug/kill-rounds --rounds 200 --seed 7`

use anyhow::{Context, Result, bail};
use clap::Parser;
use integration_tests::kill_rounds::schedule::Victim;
use integration_tests::kill_rounds::{Options, own_machine, run};

/// Kill rounds: the agent, supervisors and processes of tasks, shims of containers, the Docker Engine and its
/// containerd, on a machine of the run's own (namespaces, so this needs root).
#[derive(Debug, Parser)]
struct Arguments {
    #[arg(long, default_value_t = 20)]
    rounds: usize,
    /// Decides the rounds; random by default.
    #[arg(long)]
    seed: Option<u64>,
    /// Kill only this: agent, supervisor, task, shim, engine or containerd; may be given several times.
    #[arg(long, value_name = "VICTIM", value_parser = victim)]
    only: Vec<Victim>,
    /// Containers outlive the engine's process.
    #[arg(long)]
    live_restore: bool,
    /// Keep logs and data.
    #[arg(long)]
    keep: bool,
}

fn victim(name: &str) -> Result<Victim, String> {
    let names: Vec<&str> = Victim::ALL.iter().map(|victim| victim.name()).collect();
    Victim::from_name(name).ok_or_else(|| format!("want one of {}", names.join(", ")))
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    if let Some(missing) = own_machine::missing() {
        bail!("kill rounds are not possible here: {missing}");
    }
    let Some(directory) = own_machine::directory() else {
        return own_machine::run_inside(arguments.keep);
    };
    let options = Options {
        seed: arguments.seed.unwrap_or_else(rand::random),
        rounds: arguments.rounds,
        only: arguments.only,
        is_live_restore: arguments.live_restore,
    };
    println!("seed {}", options.seed);
    let runtime = tokio::runtime::Runtime::new()?;
    let played = runtime.block_on(run(&directory, &options));
    played.with_context(|| format!("seed {}", options.seed))
}
