//! `kafila volume …`

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::page::Page;

#[derive(Debug, Subcommand)]
pub enum Command {
    /// List volumes or show one
    Status(Status),
    /// Register a directory of a node as a volume
    Register(Register),
    /// Delete an unused volume; its directory stays on the node
    Delete(Delete),
    /// Write an example volume file
    Init(Init),
    /// List and delete claims of task groups on sticky volumes
    #[command(subcommand)]
    Claim(Claim),
}

#[derive(Debug, Args)]
#[command(after_help = STATUS_EXAMPLES)]
pub struct Status {
    /// Volume: its ID, a unique prefix of it, or its name
    #[arg(value_parser = super::values::id)]
    pub id: Option<String>,
    /// Only volumes of this type
    #[arg(long = "type", value_name = "TYPE", value_parser = ["host"])]
    pub volume_type: Option<String>,
    /// Only volumes on this node
    #[arg(long, value_name = "NODE", value_parser = super::values::id)]
    pub node: Option<String>,
    /// Only volumes on nodes of this pool
    #[arg(long, value_name = "POOL", value_parser = super::values::id)]
    pub node_pool: Option<String>,
    #[command(flatten)]
    pub page: Page,
    /// Show full IDs
    #[arg(long)]
    pub verbose: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

const STATUS_EXAMPLES: &str = "\
Examples:
  kafila volume status
  kafila volume status -node=8a3f2c1e
  kafila volume status data

Exit codes: 0 shown; 1 no such volume, or the gateway did not answer.";

#[derive(Debug, Args)]
#[command(after_help = REGISTER_EXAMPLES)]
pub struct Register {
    /// File that describes the volume; '-' reads standard input
    pub path: PathBuf,
    /// Read the file as JSON of the HTTP API
    #[arg(long)]
    pub json: bool,
}

const REGISTER_EXAMPLES: &str = "\
Examples:
  kafila volume register volume.hcl

The directory must exist on the node: a task fails if it is missing. Registering a volume again can
only add capabilities; to change other fields, delete the volume and register it again.
'kafila volume init' writes an example.

Exit codes: 0 registered, or already registered; 1 an error.";

#[derive(Debug, Args)]
#[command(after_help = DELETE_EXAMPLES)]
pub struct Delete {
    /// Volume: its ID, a unique prefix of it, or its name
    #[arg(value_parser = super::values::id)]
    pub id: String,
}

const DELETE_EXAMPLES: &str = "\
Examples:
  kafila volume delete 8a3f2c1e

Exit codes: 0 deleted; 1 the volume is in use, no such volume, or the gateway did not answer.";

#[derive(Debug, Args)]
#[command(after_help = INIT_EXAMPLES)]
pub struct Init {
    /// File to write [default: volume.hcl or volume.json]
    pub path: Option<PathBuf>,
    /// Write JSON instead of HCL
    #[arg(long)]
    pub json: bool,
    /// Print nothing on success
    #[arg(long)]
    pub quiet: bool,
}

const INIT_EXAMPLES: &str = "\
Examples:
  kafila volume init
  kafila volume init -json data.json

Exit codes: 0 written; 1 the file already exists or cannot be written.";

#[derive(Debug, Subcommand)]
pub enum Claim {
    /// List claims of task groups on sticky volumes
    List(ClaimList),
    /// Delete a claim, so that the group's next allocation may use any volume of the same name
    Delete(ClaimDelete),
}

#[derive(Debug, Args)]
#[command(after_help = CLAIM_LIST_EXAMPLES)]
pub struct ClaimList {
    /// Only claims of this job
    #[arg(long, value_name = "JOB", value_parser = super::values::id)]
    pub job: Option<String>,
    /// Only claims of this task group
    #[arg(long, value_name = "GROUP", value_parser = super::values::id)]
    pub group: Option<String>,
    /// Only claims on volumes of this name
    #[arg(long, value_name = "NAME", value_parser = super::values::id)]
    pub volume_name: Option<String>,
    #[command(flatten)]
    pub page: Page,
    /// Show full IDs
    #[arg(long)]
    pub verbose: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

const CLAIM_LIST_EXAMPLES: &str = "\
Examples:
  kafila volume claim list
  kafila volume claim list -job=db

Exit codes: 0 listed; 1 the gateway did not answer.";

#[derive(Debug, Args)]
#[command(after_help = CLAIM_DELETE_EXAMPLES)]
pub struct ClaimDelete {
    /// The claim's ID, or a unique prefix of it
    #[arg(value_parser = super::values::id)]
    pub id: String,
}

const CLAIM_DELETE_EXAMPLES: &str = "\
Examples:
  kafila volume claim delete 17c0ffee

Exit codes: 0 deleted; 1 no such claim, or the gateway did not answer.";
