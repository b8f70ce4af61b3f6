//! `kafila scaling …`

use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Show the scaling policies of jobs
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
    /// Only policies of this job
    #[arg(long, value_name = "JOB", value_parser = super::values::id)]
    pub job: Option<String>,
    /// Only policies of this type
    #[arg(long = "type", value_name = "TYPE")]
    pub of_type: Option<String>,
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
  kafila scaling policy list
  kafila scaling policy list -job web

Exit codes: 0 listed; 1 the gateway did not answer.";

#[derive(Debug, Args)]
#[command(after_help = INFO_EXAMPLES)]
pub struct Info {
    /// The policy, or a unique prefix of its ID
    #[arg(value_parser = super::values::id)]
    pub id: String,
    /// Show the full ID
    #[arg(long)]
    pub verbose: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

const INFO_EXAMPLES: &str = "\
Examples:
  kafila scaling policy info 8a3f2c1e

Exit codes: 0 shown; 1 no such policy, ambiguous, or the gateway did not answer.";
