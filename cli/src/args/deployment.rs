//! `kafila deployment …`

use clap::{Args, Subcommand};

use super::deployment_update::{Fail, Pause, Promote, Resume, Unblock};

#[derive(Debug, Subcommand)]
pub enum Command {
    /// List deployments
    List(List),
    /// Show a deployment: how far the rollout is
    Status(Status),
    /// Let the rest of a job follow its canaries
    Promote(Promote),
    /// Pause a deployment: nothing more of it is rolled out
    Pause(Pause),
    /// Go on with a deployment that is paused
    Resume(Resume),
    /// End a deployment as failed
    Fail(Fail),
    /// Go on with a deployment that waits for other regions
    Unblock(Unblock),
}

#[derive(Debug, Args)]
#[command(after_help = LIST_EXAMPLES)]
pub struct List {
    /// Show full ids
    #[arg(long)]
    pub verbose: bool,
    /// Print JSON, for programs
    #[arg(long)]
    pub json: bool,
}

const LIST_EXAMPLES: &str = "\
Examples:
  kafila deployment list
  kafila deployment list -json | jq -r '.[] | select(.Status == \"running\") | .JobID'

Exit codes: 0 listed, even when there are none; 1 the gateway did not answer.";

#[derive(Debug, Args)]
#[command(after_help = STATUS_EXAMPLES)]
pub struct Status {
    /// The deployment, or the start of its id
    pub id: String,
    /// Watch until it has ended
    #[arg(long)]
    pub monitor: bool,
    /// Show full ids and times, and the allocations
    #[arg(long)]
    pub verbose: bool,
    /// Print JSON, for programs
    #[arg(long, conflicts_with = "monitor")]
    pub json: bool,
}

const STATUS_EXAMPLES: &str = "\
Examples:
  kafila deployment status 5e6f7a8b
  kafila deployment status -monitor 5e6f7a8b

Exit codes: 0 shown, with -monitor successful; 1 no such deployment, several, the gateway did not
answer, or with -monitor it did not succeed.";
