//! `kafila deployment …`

pub mod update;

use clap::{Args, Subcommand};

use self::update::{Fail, Pause, Promote, Resume, Unblock};

#[derive(Debug, Subcommand)]
pub enum Command {
    /// List deployments
    List(List),
    /// List deployments or show the progress of one
    Status(Status),
    /// Promote the canaries of a deployment
    Promote(Promote),
    /// Pause a deployment
    Pause(Pause),
    /// Resume a paused deployment
    Resume(Resume),
    /// Mark a deployment as failed
    Fail(Fail),
    /// Unblock a deployment that waits for other regions
    Unblock(Unblock),
}

#[derive(Debug, Args)]
#[command(after_help = LIST_EXAMPLES)]
pub struct List {
    #[command(flatten)]
    pub page: super::page::Page,
    /// Show full IDs
    #[arg(long)]
    pub verbose: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

const LIST_EXAMPLES: &str = "\
Examples:
  kafila deployment list
  kafila deployment list -per-page=20
  kafila deployment list -json | jq -r '.[] | select(.Status == \"running\") | .JobID'

Exit codes: 0 listed, even if there are none; 1 the gateway did not answer.";

#[derive(Debug, Args)]
#[command(after_help = STATUS_EXAMPLES)]
pub struct Status {
    /// The deployment, or a unique prefix of its ID
    #[arg(value_parser = super::values::id)]
    pub id: Option<String>,
    /// Watch the deployment until it ends
    #[arg(long, requires = "id")]
    pub monitor: bool,
    /// Show full IDs and times, and the allocations
    #[arg(long)]
    pub verbose: bool,
    /// Print JSON
    #[arg(long, conflicts_with = "monitor")]
    pub json: bool,
}

const STATUS_EXAMPLES: &str = "\
Examples:
  kafila deployment status                     all, as kafila deployment list
  kafila deployment status 5e6f7a8b
  kafila deployment status -monitor 5e6f7a8b

Exit codes: 0 shown, and with -monitor successful; 1 no such deployment, ambiguous, the gateway did
not answer, or with -monitor unsuccessful.";
