//! `kafila eval …`

use clap::{Args, Subcommand};

use super::page::Page;

#[derive(Debug, Subcommand)]
pub enum Command {
    /// List evaluations
    List(List),
    /// Show an evaluation: its trigger, and the allocations that could not be placed
    Status(Status),
    /// Explain an evaluation: why each node accepts or rejects its job, and what would change that
    Explain(Explain),
    /// Delete evaluations while the eval-broker is paused
    Delete(Delete),
}

#[derive(Debug, Args)]
#[command(after_help = LIST_EXAMPLES)]
pub struct List {
    /// Only evaluations of this job
    #[arg(long, value_name = "JOB", value_parser = super::values::id)]
    pub job: Option<String>,
    /// Only evaluations with this status
    #[arg(long, value_name = "STATUS",
          value_parser = ["pending", "blocked", "complete", "failed", "canceled"])]
    pub status: Option<String>,
    #[command(flatten)]
    pub page: Page,
    /// Show full IDs
    #[arg(long)]
    pub verbose: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

const LIST_EXAMPLES: &str = "\
Examples:
  kafila eval list
  kafila eval list -job web -status blocked
  kafila eval list -per-page 20

Exit codes: 0 listed, even if there are none; 1 the gateway did not answer.";

#[derive(Debug, Args)]
#[command(after_help = STATUS_EXAMPLES)]
pub struct Status {
    /// The evaluation, or a unique prefix of its ID
    #[arg(value_parser = super::values::id)]
    pub id: String,
    /// Watch the evaluation until it ends
    #[arg(long)]
    pub monitor: bool,
    /// Show full IDs and times
    #[arg(long)]
    pub verbose: bool,
    /// Print JSON
    #[arg(long, conflicts_with = "monitor")]
    pub json: bool,
}

const STATUS_EXAMPLES: &str = "\
Examples:
  kafila eval status 1a2b3c4d
  kafila eval status -monitor 1a2b3c4d

Exit codes: 0 shown; 1 no such evaluation, ambiguous, or the gateway did not answer; 2 with -monitor:
some allocations could not be placed.";

#[derive(Debug, Args)]
#[command(after_help = EXPLAIN_EXAMPLES)]
pub struct Explain {
    /// The evaluation, or a unique prefix of its ID
    #[arg(value_parser = super::values::id)]
    pub id: String,
    /// Always include this node: its ID, or a unique prefix of it
    #[arg(long, value_name = "NODE", value_parser = super::values::id)]
    pub node: Option<String>,
    /// Show full IDs
    #[arg(long)]
    pub verbose: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

const EXPLAIN_EXAMPLES: &str = "\
Checks the current job of the evaluation against the current state of every node. For each task group
and node class, shows how many nodes are outside the job's datacenters and node pool, unavailable,
filtered (by each failed constraint, not only the first), exhausted (and by how much) or outscored, and
the smallest change that would let a node accept an allocation.

Examples:
  kafila eval explain 1a2b3c4d
  kafila eval explain -node 4d2b 1a2b3c4d

Exit codes: 0 explained; 1 no such evaluation or node, ambiguous, or the gateway did not answer.";

#[derive(Debug, Args)]
#[command(after_help = DELETE_EXAMPLES)]
pub struct Delete {
    /// The evaluations, or unique prefixes of their IDs
    #[arg(required = true, value_parser = super::values::id)]
    pub ids: Vec<String>,
    /// Accepted for compatibility; the command never asks for confirmation
    #[arg(long)]
    pub yes: bool,
}

const DELETE_EXAMPLES: &str = "\
Clears a backlog of pending evaluations. Deletes all of the given evaluations or none. Refuses
evaluations whose allocations run or still have to be replaced, and the last evaluation of a dead job.

Examples:
  kafila operator scheduler set-config -pause-eval-broker=true
  kafila eval delete 1a2b3c4d
  kafila eval list -status pending -job web -json | jq -r '.[].ID' | xargs -n 500 kafila eval delete
  kafila operator scheduler set-config -pause-eval-broker=false

Exit codes: 0 deleted; 1 the eval-broker is not paused, an evaluation is needed, no such evaluation,
ambiguous, or the gateway did not answer.";
