//! `kafila scaling …`

use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub enum Command {
    /// See what jobs say about the counts of their groups
    #[command(subcommand)]
    Policy(Policy),
}

/// `kafila scaling policy …`
#[derive(Debug, Subcommand)]
pub enum Policy {
    /// List scaling policies
    List(List),
    /// Show a scaling policy
    Info(Info),
}

#[derive(Debug, Args)]
#[command(after_help = LIST_EXAMPLES)]
pub struct List {
    /// Only those of this job
    #[arg(long, value_name = "JOB")]
    pub job: Option<String>,
    /// Only those of this type
    #[arg(long = "type", value_name = "TYPE")]
    pub of_type: Option<String>,
    /// Show full ids
    #[arg(long)]
    pub verbose: bool,
    /// Print JSON, for programs
    #[arg(long)]
    pub json: bool,
}

const LIST_EXAMPLES: &str = "\
Examples:
  kafila scaling policy list
  kafila scaling policy list -job web

Exit codes: 0 listed; 1 the gateway did not answer.";

#[derive(Debug, Args)]
#[command(after_help = INFO_EXAMPLES)]
pub struct Info {
    /// The policy, or the start of its id
    pub id: String,
    /// Show the full id
    #[arg(long)]
    pub verbose: bool,
    /// Print JSON, for programs
    #[arg(long)]
    pub json: bool,
}

const INFO_EXAMPLES: &str = "\
Examples:
  kafila scaling policy info 8a3f2c1e

Exit codes: 0 shown; 1 no such policy, several, or the gateway did not answer.";
