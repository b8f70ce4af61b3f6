//! `kafila system …`

use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Forget what is over now, instead of when it is old enough
    Gc(Gc),
}

#[derive(Debug, Args)]
#[command(after_help = GC_EXAMPLES)]
pub struct Gc {
    /// Print how much was forgotten
    #[arg(long)]
    pub verbose: bool,
}

const GC_EXAMPLES: &str = "\
What goes: dead jobs that were stopped or ran to their end, with all that belongs to them; ended
evaluations and allocations; deployments that are over; nodes that are down and hold nothing.
The same goes by itself once it is old enough (cluster-controller, *_gc_threshold).

Examples:
  kafila system gc
  kafila system gc -verbose

Exit codes: 0 done; 1 not, or the gateway did not answer.";
