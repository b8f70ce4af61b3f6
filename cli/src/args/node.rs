//! `kafila node …`

pub mod control;
pub mod drain;
pub mod introduction;
pub mod meta;

use clap::{ArgGroup, Args, Subcommand};

use super::page::Page;

#[derive(Debug, Subcommand)]
pub enum Command {
    /// List nodes or show one
    Status(Status),
    /// Set whether a node accepts new allocations
    Eligibility(Eligibility),
    /// Start, watch or end the drain of a node
    Drain(Box<drain::Drain>),
    /// Manage the tokens with which nodes join
    #[command(subcommand, alias = "intro")]
    Introduction(introduction::Command),
    /// Set and show metadata of a node that runs
    #[command(subcommand)]
    Meta(meta::Command),
    /// Measure what is in use on a node's machine
    Stats(control::Stats),
    /// Run the fingerprint of a node again
    Refresh(control::Refresh),
    /// Manage node pools
    #[command(subcommand)]
    Pool(super::node_pool::Command),
}

#[derive(Debug, Args)]
#[command(after_help = STATUS_EXAMPLES)]
pub struct Status {
    /// The node, or a unique prefix of its ID
    #[arg(value_parser = super::values::id)]
    pub id: Option<String>,
    /// Show the node of this machine, found by its host name
    #[arg(long = "self", conflicts_with = "id")]
    pub this: bool,
    /// List: show the number of running allocations
    #[arg(long)]
    pub allocs: bool,
    /// List: show the operating system
    #[arg(long)]
    pub os: bool,
    /// List: print only IDs
    #[arg(long)]
    pub quiet: bool,
    /// One node: leave out drivers and allocated resources
    #[arg(long)]
    pub short: bool,
    /// One node: measure what is in use on its machine
    #[arg(long, conflicts_with = "json")]
    pub stats: bool,
    #[command(flatten)]
    pub page: Page,
    /// Show full IDs and times, addresses and attributes
    #[arg(long)]
    pub verbose: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

const STATUS_EXAMPLES: &str = "\
Examples:
  kafila node status
  kafila node status -allocs -os
  kafila node status 4d2ba53b
  kafila node status -self                     the node of this machine
  kafila node status -stats 4d2ba53b           with cpu, memory and disks in use
  kafila node status -verbose 4d2ba53b         with the attributes that constraints can use

Exit codes: 0 shown; 1 no such node, ambiguous, or the gateway did not answer.";

#[derive(Debug, Args)]
#[command(
    after_help = ELIGIBILITY_EXAMPLES,
    group = ArgGroup::new("wanted").args(["enable", "disable"]).required(true)
)]
pub struct Eligibility {
    /// The node, or a unique prefix of its ID
    #[arg(value_parser = super::values::id)]
    pub id: String,
    /// Accept new allocations
    #[arg(long)]
    pub enable: bool,
    /// Accept no new allocations; running ones stay
    #[arg(long)]
    pub disable: bool,
}

const ELIGIBILITY_EXAMPLES: &str = "\
Examples:
  kafila node eligibility -disable 4d2ba53b
  kafila node eligibility -enable 4d2ba53b

Exit codes: 0 set; 1 no such node, ambiguous, or the gateway did not answer.";
