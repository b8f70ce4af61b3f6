//! `kafila namespace …`

use clap::{Args, Subcommand};

use super::page::Page;

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
    /// Delete an empty namespace
    Delete(Delete),
}

#[derive(Debug, Args)]
#[command(after_help = LIST_EXAMPLES)]
pub struct List {
    #[command(flatten)]
    pub page: Page,
    /// Print JSON
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
    #[arg(value_parser = super::values::id)]
    pub name: String,
    /// Print JSON
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
    #[arg(value_parser = super::values::id)]
    pub name: String,
}

const INSPECT_EXAMPLES: &str = "\
Examples:
  kafila namespace inspect dev > dev.json          for 'namespace apply -json'

Exit codes: 0 printed; 1 no such namespace, or the gateway did not answer.";

#[derive(Debug, Args)]
#[command(after_help = APPLY_EXAMPLES)]
pub struct Apply {
    /// Name of the namespace, or a file that describes it; '-' reads standard input
    #[arg(value_parser = super::values::id)]
    pub input: String,
    /// Description; overrides the one in the file
    #[arg(long, value_name = "TEXT")]
    pub description: Option<String>,
    /// Read the file as JSON of the HTTP API
    #[arg(long)]
    pub json: bool,
}

const APPLY_EXAMPLES: &str = "\
Examples:
  kafila namespace apply dev
  kafila namespace apply -description 'for trying out' dev
  kafila namespace apply dev.hcl
  kafila namespace apply -json - < dev.json

With a name, only the fields named by flags change. With a file, fields that the file leaves out are
reset.

Exit codes: 0 applied; 1 an error.";

#[derive(Debug, Args)]
#[command(after_help = DELETE_EXAMPLES)]
pub struct Delete {
    /// The namespace's name
    #[arg(value_parser = super::values::id)]
    pub name: String,
}

const DELETE_EXAMPLES: &str = "\
Examples:
  kafila namespace delete dev

Exit codes: 0 deleted; 1 jobs, allocations or volumes are in it, no such namespace, or the gateway
did not answer.";
