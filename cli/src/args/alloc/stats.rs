//! `kafila alloc stats`

use clap::Args;

use crate::args::values;

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Stats {
    /// The allocation, or a unique prefix of its ID
    #[arg(value_parser = values::id)]
    pub id: String,
    /// The task [default: all running tasks]
    #[arg(value_parser = values::id)]
    pub task: Option<String>,
    /// Show full IDs and times
    #[arg(long)]
    pub verbose: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

const EXAMPLES: &str = "\
Examples:
  kafila alloc stats 8a3f2c1e
  kafila alloc stats -json 8a3f2c1e | jq .ResourceUsage.MemoryStats.Usage

The node measures for half a second. 'kafila alloc status -stats' shows the same beside the tasks.

Exit codes: 0 shown; 1 no such allocation, it has ended, or its node cannot be reached.";
