//! `kafila volume …`

use std::path::PathBuf;

use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub enum Command {
    /// List volumes, or show one
    Status(Status),
    /// Make a directory of a node known as a volume
    Register(Register),
    /// Delete a volume that nobody uses; the directory stays
    Delete(Delete),
    /// Write an example of a volume's file
    Init(Init),
    /// See and delete what groups claim of sticky volumes
    #[command(subcommand)]
    Claim(Claim),
}

#[derive(Debug, Args)]
#[command(after_help = STATUS_EXAMPLES)]
pub struct Status {
    /// The volume's id, the start of it, or its name
    pub id: Option<String>,
    /// Only volumes of this type; there is one
    #[arg(long = "type", value_name = "TYPE", value_parser = ["host"])]
    pub volume_type: Option<String>,
    /// Only those of this node
    #[arg(long, value_name = "NODE")]
    pub node: Option<String>,
    /// Only those of nodes in this pool
    #[arg(long, value_name = "POOL")]
    pub node_pool: Option<String>,
    /// At most N volumes
    #[arg(long, value_name = "N", value_parser = super::whole::<u32>)]
    pub per_page: Option<u32>,
    /// Where the previous page ended
    #[arg(long, value_name = "TOKEN")]
    pub page_token: Option<String>,
    /// Show full ids
    #[arg(long)]
    pub verbose: bool,
    /// Print JSON, for programs
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
    /// The file that describes it; '-' reads standard input
    pub path: PathBuf,
    /// The file is JSON of the HTTP API
    #[arg(long)]
    pub json: bool,
}

const REGISTER_EXAMPLES: &str = "\
Examples:
  kafila volume register volume.hcl

The directory has to be on the node already: a task that does not find it fails and says so.
A volume that is there may get more capabilities; for all else delete it and register it anew.
'kafila volume init' writes an example.

Exit codes: 0 registered, or so it was; 1 an error.";

#[derive(Debug, Args)]
#[command(after_help = DELETE_EXAMPLES)]
pub struct Delete {
    /// The volume's id, the start of it, or its name
    pub id: String,
}

const DELETE_EXAMPLES: &str = "\
Examples:
  kafila volume delete 8a3f2c1e

Exit codes: 0 deleted; 1 somebody uses it, no such volume, or the gateway did not answer.";

#[derive(Debug, Args)]
#[command(after_help = INIT_EXAMPLES)]
pub struct Init {
    /// Where to write it [default: volume.hcl or volume.json]
    pub path: Option<PathBuf>,
    /// Write JSON
    #[arg(long)]
    pub json: bool,
    /// Say nothing when it is written
    #[arg(long)]
    pub quiet: bool,
}

const INIT_EXAMPLES: &str = "\
Examples:
  kafila volume init
  kafila volume init -json data.json

Exit codes: 0 written; 1 there is such a file already, or it cannot be written.";

#[derive(Debug, Subcommand)]
pub enum Claim {
    /// List what groups claim of sticky volumes
    List(ClaimList),
    /// Delete a claim: the group's next allocation may go to any volume of the name
    Delete(ClaimDelete),
}

#[derive(Debug, Args)]
#[command(after_help = CLAIM_LIST_EXAMPLES)]
pub struct ClaimList {
    /// Only this job's
    #[arg(long, value_name = "JOB")]
    pub job: Option<String>,
    /// Only this group's
    #[arg(long, value_name = "GROUP")]
    pub group: Option<String>,
    /// Only of volumes of this name
    #[arg(long, value_name = "NAME")]
    pub volume_name: Option<String>,
    /// At most N claims
    #[arg(long, value_name = "N", value_parser = super::whole::<u32>)]
    pub per_page: Option<u32>,
    /// Where the previous page ended
    #[arg(long, value_name = "TOKEN")]
    pub page_token: Option<String>,
    /// Show full ids
    #[arg(long)]
    pub verbose: bool,
    /// Print JSON, for programs
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
    /// The claim's id, or the start of it
    pub id: String,
}

const CLAIM_DELETE_EXAMPLES: &str = "\
Examples:
  kafila volume claim delete 17c0ffee

Exit codes: 0 deleted; 1 no such claim, or the gateway did not answer.";
