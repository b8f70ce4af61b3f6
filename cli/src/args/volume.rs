//! `kafila volume …`

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::page::Page;

#[derive(Debug, Subcommand)]
pub enum Command {
    /// List volumes or show one
    Status(Status),
    /// Register a directory of a node, or a storage system's volume
    Register(Register),
    /// Let a storage system create a volume, and register it
    Create(Create),
    /// Forget an unused volume of a storage system, which keeps it
    Deregister(Deregister),
    /// Delete an unused volume: a directory stays on its node, a storage system deletes the data
    Delete(Delete),
    /// Detach a storage system's volume from a node
    Detach(Detach),
    /// Create, delete and list snapshots of storage systems' volumes
    #[command(subcommand)]
    Snapshot(Snapshot),
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
    #[arg(long = "type", value_name = "TYPE", value_parser = ["host", "csi"])]
    pub volume_type: Option<String>,
    /// Only volumes of this CSI plugin
    #[arg(long, value_name = "PLUGIN", value_parser = super::values::id)]
    pub plugin_id: Option<String>,
    /// Show the volumes that the storage system of -plugin-id has, registered or not
    #[arg(long, requires = "plugin_id")]
    pub external: bool,
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

impl Status {
    /// Tells whether storage systems' volumes are meant.
    pub fn is_csi(&self) -> bool {
        self.volume_type.as_deref() == Some("csi") || self.plugin_id.is_some()
    }
}

const STATUS_EXAMPLES: &str = "\
Examples:
  kafila volume status
  kafila volume status -node=8a3f2c1e
  kafila volume status -type=csi
  kafila volume status -type=csi -plugin-id=ebs -external
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

#[derive(Debug, Args)]
#[command(after_help = CREATE_EXAMPLES)]
pub struct Create {
    /// File that describes the volume, of type "csi"; '-' reads standard input
    pub path: PathBuf,
    /// Read the file as JSON of the HTTP API
    #[arg(long)]
    pub json: bool,
}

const CREATE_EXAMPLES: &str = "\
Examples:
  kafila volume create volume.hcl

The storage system knows the volume by its name, so a second attempt finds what the first has created.
'kafila volume init -type=csi' writes an example.

Exit codes: 0 created, or already created; 1 an error.";

#[derive(Debug, Args)]
#[command(after_help = DEREGISTER_EXAMPLES)]
pub struct Deregister {
    /// The volume's ID
    #[arg(value_parser = super::values::id)]
    pub id: String,
    /// Forget attachments that no allocation uses; the storage system may keep the volume attached
    #[arg(long)]
    pub force: bool,
}

const DEREGISTER_EXAMPLES: &str = "\
Examples:
  kafila volume deregister data

'kafila volume delete' deletes a host volume, which is a directory of a node.

Exit codes: 0 deregistered; 1 the volume is in use, no such volume, or the gateway did not answer.";

#[derive(Debug, Args)]
#[command(after_help = DETACH_EXAMPLES)]
pub struct Detach {
    /// The volume's ID
    #[arg(value_parser = super::values::id)]
    pub id: String,
    /// The node's ID, or a unique prefix of it
    #[arg(value_parser = super::values::id)]
    pub node: String,
}

const DETACH_EXAMPLES: &str = "\
Examples:
  kafila volume detach data 8a3f2c1e

A volume that no allocation uses is detached without this command.
'kafila volume status -type=csi data' shows the progress.

Exit codes: 0 being detached, or not attached; 1 an allocation on the node uses the volume, no such
volume, or the gateway did not answer.";

#[derive(Debug, Subcommand)]
pub enum Snapshot {
    /// Create a snapshot of a volume
    Create(SnapshotCreate),
    /// Delete a snapshot
    Delete(SnapshotDelete),
    /// List the snapshots of a storage system
    List(SnapshotList),
}

#[derive(Debug, Args)]
#[command(after_help = SNAPSHOT_CREATE_EXAMPLES)]
pub struct SnapshotCreate {
    /// The volume's ID
    #[arg(value_parser = super::values::id)]
    pub id: String,
    /// Name of the snapshot, by which a second attempt finds the first
    pub name: Option<String>,
    /// A parameter for the plugin; repeatable
    #[arg(long = "parameter", value_name = "KEY=VALUE")]
    pub parameters: Vec<String>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

const SNAPSHOT_CREATE_EXAMPLES: &str = "\
Examples:
  kafila volume snapshot create data before-upgrade

Exit codes: 0 created; 1 an error.";

#[derive(Debug, Args)]
#[command(after_help = SNAPSHOT_DELETE_EXAMPLES)]
pub struct SnapshotDelete {
    /// The plugin's ID
    #[arg(value_parser = super::values::id)]
    pub plugin_id: String,
    /// The storage system's ID of the snapshot
    pub snapshot_id: String,
}

const SNAPSHOT_DELETE_EXAMPLES: &str = "\
Examples:
  kafila volume snapshot delete ebs snap-0123456789abcdef0

Exit codes: 0 deleted; 1 an error.";

#[derive(Debug, Args)]
#[command(after_help = SNAPSHOT_LIST_EXAMPLES)]
pub struct SnapshotList {
    /// The plugin's ID
    #[arg(long = "plugin", visible_alias = "plugin-id", value_name = "PLUGIN", value_parser = super::values::id)]
    pub plugin_id: String,
    /// Largest number of snapshots
    #[arg(long, value_name = "NUMBER", default_value_t = 0, value_parser = super::values::whole::<u32>)]
    pub per_page: u32,
    /// Token of the page to show, from the page before
    #[arg(long, value_name = "TOKEN", default_value = "")]
    pub page_token: String,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

const SNAPSHOT_LIST_EXAMPLES: &str = "\
Examples:
  kafila volume snapshot list -plugin=ebs

Exit codes: 0 listed; 1 an error.";

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
    /// Volume: its ID, a unique prefix of it, or its name; of type csi, its ID
    #[arg(value_parser = super::values::id)]
    pub id: String,
    /// Type of the volume
    #[arg(long = "type", value_name = "TYPE", value_parser = ["host", "csi"], default_value = "host")]
    pub volume_type: String,
}

const DELETE_EXAMPLES: &str = "\
Examples:
  kafila volume delete 8a3f2c1e
  kafila volume delete -type=csi data

Exit codes: 0 deleted; 1 the volume is in use, no such volume, or the gateway did not answer.";

#[derive(Debug, Args)]
#[command(after_help = INIT_EXAMPLES)]
pub struct Init {
    /// File to write [default: volume.hcl or volume.json]
    pub path: Option<PathBuf>,
    /// Write JSON instead of HCL
    #[arg(long)]
    pub json: bool,
    /// Type of the volume
    #[arg(long = "type", value_name = "TYPE", value_parser = ["host", "csi"], default_value = "host")]
    pub volume_type: String,
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
