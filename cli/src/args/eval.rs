//! `kafila eval …`

use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub enum Command {
    /// List evaluations
    List(List),
    /// Show an evaluation: why it was made, and what could not be placed
    Status(Status),
    /// Explain an evaluation: what every node says of its job, and what would change that
    Explain(Explain),
    /// Delete evaluations that nobody goes by, while the eval-broker is paused
    Delete(Delete),
}

#[derive(Debug, Args)]
#[command(after_help = LIST_EXAMPLES)]
pub struct List {
    /// Only those of this job
    #[arg(long, value_name = "JOB")]
    pub job: Option<String>,
    /// Only those of this status: pending, blocked, complete, failed, canceled
    #[arg(long, value_name = "STATUS",
          value_parser = ["pending", "blocked", "complete", "failed", "canceled"])]
    pub status: Option<String>,
    /// At most N of them
    #[arg(long, value_name = "N", value_parser = super::whole::<u32>)]
    pub per_page: Option<u32>,
    /// Where the previous page ended
    #[arg(long, value_name = "TOKEN")]
    pub page_token: Option<String>,
    /// Show full ids
    #[arg(long)]
    pub verbose: bool,
    /// Print JSON, for programs
    #[arg(long)]
    pub json: bool,
}

const LIST_EXAMPLES: &str = "\
Examples:
  kafila eval list
  kafila eval list -job web -status blocked
  kafila eval list -per-page 20

Exit codes: 0 listed, even when there are none; 1 the gateway did not answer.";

#[derive(Debug, Args)]
#[command(after_help = STATUS_EXAMPLES)]
pub struct Status {
    /// The evaluation, or the start of its id
    pub id: String,
    /// Watch until it has ended, as job run does
    #[arg(long)]
    pub monitor: bool,
    /// Show full ids and times
    #[arg(long)]
    pub verbose: bool,
    /// Print JSON, for programs
    #[arg(long, conflicts_with = "monitor")]
    pub json: bool,
}

const STATUS_EXAMPLES: &str = "\
Examples:
  kafila eval status 1a2b3c4d
  kafila eval status -monitor 1a2b3c4d

Exit codes: 0 shown; 1 no such evaluation, several, or the gateway did not answer; with -monitor 2
when not everything could be placed.";

#[derive(Debug, Args)]
#[command(after_help = EXPLAIN_EXAMPLES)]
pub struct Explain {
    /// The evaluation, or the start of its id
    pub id: String,
    /// Tell of this node in any case: its id, or the start of it
    #[arg(long, value_name = "NODE")]
    pub node: Option<String>,
    /// Show full ids
    #[arg(long)]
    pub verbose: bool,
    /// Print JSON, for programs
    #[arg(long)]
    pub json: bool,
}

const EXPLAIN_EXAMPLES: &str = "\
Asks every node about the evaluation's job as both are now: for each task group and each node class,
how many nodes are out of its datacenters and pool, unavailable, filtered (by every constraint that
they fail, not the first alone), exhausted (with how much is missing) or outscored, and which change
would let the nearest of them take one.

Examples:
  kafila eval explain 1a2b3c4d
  kafila eval explain -node 4d2b 1a2b3c4d

Exit codes: 0 explained; 1 no such evaluation or node, several, or the gateway did not answer.";

#[derive(Debug, Args)]
#[command(after_help = DELETE_EXAMPLES)]
pub struct Delete {
    /// The evaluations, or the starts of their ids
    #[arg(required = true)]
    pub ids: Vec<String>,
    /// For scripts that say so: nothing is asked
    #[arg(long)]
    pub yes: bool,
}

const DELETE_EXAMPLES: &str = "\
For when far too many evaluations wait. All that are named go, or none: refused are those whose
allocations live or are still to be replaced, and the last one of a job that has ended.

Examples:
  kafila operator scheduler set-config -pause-eval-broker=true
  kafila eval delete 1a2b3c4d
  kafila eval list -status pending -job web -json | jq -r '.[].ID' | xargs -n 500 kafila eval delete
  kafila operator scheduler set-config -pause-eval-broker=false

Exit codes: 0 deleted; 1 not paused, one of them is needed, no such evaluation, several, or the
gateway did not answer.";
