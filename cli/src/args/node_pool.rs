//! `kafila node pool …`

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::page::Page;

#[derive(Debug, Subcommand)]
pub enum Command {
    /// List node pools
    List(List),
    /// Show a node pool
    Info(Info),
    /// Create or change a node pool
    Apply(Apply),
    /// Delete an empty node pool
    Delete(Delete),
    /// Write an example node pool file
    Init(Init),
    /// List the nodes in a node pool
    Nodes(Nodes),
    /// List the jobs in a node pool
    Jobs(Jobs),
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
  kafila node pool list

Exit codes: 0 listed; 1 the gateway did not answer.";

#[derive(Debug, Args)]
#[command(after_help = INFO_EXAMPLES)]
pub struct Info {
    /// The node pool's name
    #[arg(value_parser = super::values::id)]
    pub name: String,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

const INFO_EXAMPLES: &str = "\
Examples:
  kafila node pool info gpu
  kafila node pool info -json gpu > gpu.json       for 'node pool apply -json'

Exit codes: 0 shown; 1 no such node pool, or the gateway did not answer.";

#[derive(Debug, Args)]
#[command(after_help = APPLY_EXAMPLES)]
pub struct Apply {
    /// File that describes the node pool; '-' reads standard input
    pub path: PathBuf,
    /// Read the file as JSON of the HTTP API
    #[arg(long)]
    pub json: bool,
}

const APPLY_EXAMPLES: &str = "\
Examples:
  kafila node pool apply pool.hcl
  kafila node pool apply -json - < pool.json

Fields that the file leaves out are reset. 'kafila node pool init' writes an example.

Exit codes: 0 applied; 1 an error.";

#[derive(Debug, Args)]
#[command(after_help = DELETE_EXAMPLES)]
pub struct Delete {
    /// The node pool's name
    #[arg(value_parser = super::values::id)]
    pub name: String,
}

const DELETE_EXAMPLES: &str = "\
Examples:
  kafila node pool delete gpu

Exit codes: 0 deleted; 1 nodes or jobs are in it, no such node pool, or the gateway did not answer.";

#[derive(Debug, Args)]
#[command(after_help = INIT_EXAMPLES)]
pub struct Init {
    /// File to write [default: pool.hcl or pool.json]
    pub path: Option<PathBuf>,
    /// Format of the file
    #[arg(long, value_name = "FORM", default_value = "hcl")]
    pub out: Form,
    /// Print nothing on success
    #[arg(long)]
    pub quiet: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Form {
    Hcl,
    Json,
}

const INIT_EXAMPLES: &str = "\
Examples:
  kafila node pool init
  kafila node pool init -out=json gpu.json

Exit codes: 0 written; 1 the file already exists or cannot be written.";

#[derive(Debug, Args)]
#[command(after_help = NODES_EXAMPLES)]
pub struct Nodes {
    /// The node pool's name
    #[arg(value_parser = super::values::id)]
    pub name: String,
    #[command(flatten)]
    pub page: Page,
    /// Print only IDs
    #[arg(long)]
    pub quiet: bool,
    /// Show full IDs and addresses
    #[arg(long)]
    pub verbose: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

const NODES_EXAMPLES: &str = "\
Examples:
  kafila node pool nodes gpu

Exit codes: 0 listed; 1 no such node pool, or the gateway did not answer.";

#[derive(Debug, Args)]
#[command(after_help = JOBS_EXAMPLES)]
pub struct Jobs {
    /// The node pool's name
    #[arg(value_parser = super::values::id)]
    pub name: String,
    #[command(flatten)]
    pub page: Page,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

const JOBS_EXAMPLES: &str = "\
Examples:
  kafila node pool jobs gpu
  kafila node pool jobs -namespace=* gpu

Exit codes: 0 listed; 1 no such node pool, or the gateway did not answer.";
