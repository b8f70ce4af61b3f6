//! `kafila node pool …`

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

#[derive(Debug, Subcommand)]
pub enum Command {
    /// List node pools
    List(List),
    /// Show a node pool
    Info(Info),
    /// Create or change a node pool
    Apply(Apply),
    /// Delete a node pool that nobody is in
    Delete(Delete),
    /// Write an example of a node pool's file
    Init(Init),
    /// List the nodes in a node pool
    Nodes(Nodes),
    /// List the jobs in a node pool
    Jobs(Jobs),
}

#[derive(Debug, Args)]
#[command(after_help = LIST_EXAMPLES)]
pub struct List {
    /// At most N node pools
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
  kafila node pool list

Exit codes: 0 listed; 1 the gateway did not answer.";

#[derive(Debug, Args)]
#[command(after_help = INFO_EXAMPLES)]
pub struct Info {
    /// The node pool's name
    pub name: String,
    /// Print JSON, for programs
    #[arg(long)]
    pub json: bool,
}

const INFO_EXAMPLES: &str = "\
Examples:
  kafila node pool info gpu
  kafila node pool info -json gpu > gpu.json       as 'node pool apply -json' reads it

Exit codes: 0 shown; 1 no such node pool, or the gateway did not answer.";

#[derive(Debug, Args)]
#[command(after_help = APPLY_EXAMPLES)]
pub struct Apply {
    /// The file that describes it; '-' reads standard input
    pub path: PathBuf,
    /// The file is JSON of the HTTP API
    #[arg(long)]
    pub json: bool,
}

const APPLY_EXAMPLES: &str = "\
Examples:
  kafila node pool apply pool.hcl
  kafila node pool apply -json - < pool.json

What the file leaves out is taken back. 'kafila node pool init' writes an example.

Exit codes: 0 applied; 1 an error.";

#[derive(Debug, Args)]
#[command(after_help = DELETE_EXAMPLES)]
pub struct Delete {
    /// The node pool's name
    pub name: String,
}

const DELETE_EXAMPLES: &str = "\
Examples:
  kafila node pool delete gpu

Exit codes: 0 deleted; 1 nodes or jobs are in it, no such node pool, or the gateway did not answer.";

#[derive(Debug, Args)]
#[command(after_help = INIT_EXAMPLES)]
pub struct Init {
    /// Where to write it [default: pool.hcl or pool.json]
    pub path: Option<PathBuf>,
    /// The form of the file
    #[arg(long, value_name = "FORM", default_value = "hcl")]
    pub out: Form,
    /// Say nothing when it is written
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

Exit codes: 0 written; 1 there is such a file already, or it cannot be written.";

#[derive(Debug, Args)]
#[command(after_help = NODES_EXAMPLES)]
pub struct Nodes {
    /// The node pool's name
    pub name: String,
    /// At most N nodes
    #[arg(long, value_name = "N", value_parser = super::whole::<u32>)]
    pub per_page: Option<u32>,
    /// Where the previous page ended
    #[arg(long, value_name = "TOKEN")]
    pub page_token: Option<String>,
    /// Only the ids
    #[arg(long)]
    pub quiet: bool,
    /// Show full ids, and addresses
    #[arg(long)]
    pub verbose: bool,
    /// Print JSON, for programs
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
    pub name: String,
    /// At most N jobs
    #[arg(long, value_name = "N", value_parser = super::whole::<u32>)]
    pub per_page: Option<u32>,
    /// Where the previous page ended
    #[arg(long, value_name = "TOKEN")]
    pub page_token: Option<String>,
    /// Print JSON, for programs
    #[arg(long)]
    pub json: bool,
}

const JOBS_EXAMPLES: &str = "\
Examples:
  kafila node pool jobs gpu
  kafila node pool jobs -namespace=* gpu

Exit codes: 0 listed; 1 no such node pool, or the gateway did not answer.";
