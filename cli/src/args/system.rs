//! `kafila system …`

use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Collect garbage now, without waiting for the age thresholds
    Gc(Gc),
}

#[derive(Debug, Args)]
#[command(after_help = GC_EXAMPLES)]
pub struct Gc {
    /// Print the number of deleted objects
    #[arg(long)]
    pub verbose: bool,
}

const GC_EXAMPLES: &str = "\
Deletes dead jobs with their evaluations, allocations and deployments; terminal evaluations,
allocations and deployments of other jobs; and down nodes without allocations. The cluster-controller
deletes the same objects automatically once they exceed their *_gc_threshold.

Examples:
  kafila system gc
  kafila system gc -verbose

Exit codes: 0 done; 1 an error, or the gateway did not answer.";
