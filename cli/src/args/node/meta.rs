//! `kafila node meta …`

use clap::{Args, Subcommand};

use crate::args::values;

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Set and remove metadata of a node while it runs
    Apply(Apply),
    /// Show the metadata of a node: of its settings, and set while it runs
    Read(Read),
}

#[derive(Debug, Args)]
#[command(after_help = APPLY_EXAMPLES)]
pub struct Apply {
    /// The node, or a unique prefix of its ID [default: the node of this machine]
    #[arg(long, value_name = "NODE", value_parser = values::id)]
    pub node_id: Option<String>,
    /// Names to remove, separated by commas; also those of the node's settings
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = values::id)]
    pub unset: Vec<String>,
    /// Names and values
    #[arg(value_name = "NAME=VALUE", required_unless_present = "unset")]
    pub words: Vec<String>,
}

const APPLY_EXAMPLES: &str = "\
Examples:
  kafila node meta apply -node-id 4d2ba53b rack=r1 disk=ssd
  kafila node meta apply -node-id 4d2ba53b -unset disk,rack
  kafila node meta apply maintenance=true            the node of this machine

The node keeps the metadata on its disk and reports it within seconds: constraints see it as ${meta.rack}.
Running allocations stay. Its own setting `meta` comes back with the next apply of its name.

Exit codes: 0 applied; 1 no such node, an invalid name, or the node cannot be reached.";

#[derive(Debug, Args)]
#[command(after_help = READ_EXAMPLES)]
pub struct Read {
    /// The node, or a unique prefix of its ID [default: the node of this machine]
    #[arg(long, value_name = "NODE", value_parser = values::id)]
    pub node_id: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

const READ_EXAMPLES: &str = "\
Examples:
  kafila node meta read -node-id 4d2ba53b
  kafila node meta read -json                        the node of this machine

Exit codes: 0 shown; 1 no such node, or the node cannot be reached.";
