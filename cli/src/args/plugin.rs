//! `kafila plugin …`

use clap::{Args, Subcommand};

use super::page::Page;

#[derive(Debug, Subcommand)]
pub enum Command {
    /// List plugins of storage or show one
    Status(Status),
}

#[derive(Debug, Args)]
#[command(after_help = STATUS_EXAMPLES)]
pub struct Status {
    /// The plugin's ID, or a unique prefix of it
    #[arg(value_parser = super::values::id)]
    pub id: Option<String>,
    /// Only plugins of this type
    #[arg(long = "type", value_name = "TYPE", value_parser = ["csi"])]
    pub plugin_type: Option<String>,
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
  kafila plugin status
  kafila plugin status ebs

Exit codes: 0 shown; 1 no such plugin, or the gateway did not answer.";
