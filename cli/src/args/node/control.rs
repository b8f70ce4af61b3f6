//! `kafila node stats` and `kafila node refresh`

use clap::Args;

use crate::args::values;

#[derive(Debug, Args)]
#[command(after_help = STATS_EXAMPLES)]
pub struct Stats {
    /// The node, or a unique prefix of its ID
    #[arg(required_unless_present = "this", value_parser = values::id)]
    pub id: Option<String>,
    /// Use the node of this machine, found by its host name
    #[arg(long = "self", conflicts_with = "id")]
    pub this: bool,
    /// Show every core
    #[arg(long)]
    pub verbose: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

const STATS_EXAMPLES: &str = "\
Examples:
  kafila node stats 4d2ba53b
  kafila node stats -self -verbose
  kafila node stats -json 4d2ba53b | jq .Memory.Available

Exit codes: 0 shown; 1 no such node, ambiguous, or the node cannot be reached.";

#[derive(Debug, Args)]
#[command(after_help = REFRESH_EXAMPLES)]
pub struct Refresh {
    /// The node, or a unique prefix of its ID
    #[arg(required_unless_present = "this", value_parser = values::id)]
    pub id: Option<String>,
    /// Use the node of this machine, found by its host name
    #[arg(long = "self", conflicts_with = "id")]
    pub this: bool,
}

const REFRESH_EXAMPLES: &str = "\
Examples:
  kafila node refresh 4d2ba53b
  kafila node refresh -self

The node looks at its cpu, memory, disks, drivers, networks and plugins again, as it does every minute, and
reports what has changed. Its tasks go on. SIGHUP to a client-node does the same.

Exit codes: 0 looked; 1 no such node, ambiguous, or the node cannot be reached.";
