//! `kafila namespace …`

use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub enum Command {
    /// List namespaces
    List(List),
    /// Show a namespace
    Status(Status),
    /// Print a namespace as JSON
    Inspect(Inspect),
    /// Create or change a namespace
    Apply(Apply),
    /// Delete a namespace that nothing is in
    Delete(Delete),
}

#[derive(Debug, Args)]
#[command(after_help = LIST_EXAMPLES)]
pub struct List {
    /// At most N namespaces
    #[arg(long, value_name = "N", value_parser = super::whole::<u32>)]
    pub per_page: Option<u32>,
    /// Where the previous page ended
    #[arg(long, value_name = "TOKEN")]
    pub page_token: Option<String>,
    /// Print JSON, for programs
    #[arg(long)]
    pub json: bool,
}

const LIST_EXAMPLES: &str = "\
Examples:
  kafila namespace list

Exit codes: 0 listed; 1 the gateway did not answer.";

#[derive(Debug, Args)]
#[command(after_help = STATUS_EXAMPLES)]
pub struct Status {
    /// The namespace's name
    pub name: String,
    /// Print JSON, for programs
    #[arg(long)]
    pub json: bool,
}

const STATUS_EXAMPLES: &str = "\
Examples:
  kafila namespace status dev

Exit codes: 0 shown; 1 no such namespace, or the gateway did not answer.";

#[derive(Debug, Args)]
#[command(after_help = INSPECT_EXAMPLES)]
pub struct Inspect {
    /// The namespace's name
    pub name: String,
}

const INSPECT_EXAMPLES: &str = "\
Examples:
  kafila namespace inspect dev > dev.json          as 'namespace apply -json' reads it

Exit codes: 0 printed; 1 no such namespace, or the gateway did not answer.";

#[derive(Debug, Args)]
#[command(after_help = APPLY_EXAMPLES)]
pub struct Apply {
    /// A name, or the file that describes the namespace; '-' reads standard input
    pub input: String,
    /// What it is for; wins over the file
    #[arg(long, value_name = "TEXT")]
    pub description: Option<String>,
    /// The file is JSON of the HTTP API
    #[arg(long)]
    pub json: bool,
}

const APPLY_EXAMPLES: &str = "\
Examples:
  kafila namespace apply dev
  kafila namespace apply -description 'for trying out' dev
  kafila namespace apply dev.hcl
  kafila namespace apply -json - < dev.json

By name, what is known of the namespace stays but for the flags that are given.
By file, what the file leaves out is taken back.

Exit codes: 0 applied; 1 an error.";

#[derive(Debug, Args)]
#[command(after_help = DELETE_EXAMPLES)]
pub struct Delete {
    /// The namespace's name
    pub name: String,
}

const DELETE_EXAMPLES: &str = "\
Examples:
  kafila namespace delete dev

Exit codes: 0 deleted; 1 jobs, allocations or volumes are in it, no such namespace, or the gateway
did not answer.";
