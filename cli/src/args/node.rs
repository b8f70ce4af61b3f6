//! `kafila node …`

use clap::{ArgGroup, Args, Subcommand};

#[derive(Debug, Subcommand)]
pub enum Command {
    /// List nodes, or show one
    Status(Status),
    /// Let a node take new allocations, or not
    Eligibility(Eligibility),
    /// Move a node's allocations to other nodes, or stop doing so
    Drain(Box<super::drain::Drain>),
    /// Node pools: named parts of the cluster's nodes
    #[command(subcommand)]
    Pool(super::node_pool::Command),
}

#[derive(Debug, Args)]
#[command(after_help = STATUS_EXAMPLES)]
pub struct Status {
    /// The node, or the start of its id
    pub id: Option<String>,
    /// List: how many allocations run on each
    #[arg(long)]
    pub allocs: bool,
    /// List: the operating system of each
    #[arg(long)]
    pub os: bool,
    /// List: only the ids
    #[arg(long)]
    pub quiet: bool,
    /// One node: leave out what its drivers are like and what its allocations hold
    #[arg(long)]
    pub short: bool,
    /// List: at most N nodes
    #[arg(long, value_name = "N", value_parser = super::whole::<u32>)]
    pub per_page: Option<u32>,
    /// List: where the previous page ended
    #[arg(long, value_name = "TOKEN")]
    pub page_token: Option<String>,
    /// Show full ids and times, addresses, attributes
    #[arg(long)]
    pub verbose: bool,
    /// Print JSON, for programs
    #[arg(long)]
    pub json: bool,
}

const STATUS_EXAMPLES: &str = "\
Examples:
  kafila node status
  kafila node status -allocs -os
  kafila node status 4d2ba53b
  kafila node status -verbose 4d2ba53b         with every attribute that constraints can see

Exit codes: 0 shown; 1 no such node, several, or the gateway did not answer.";

#[derive(Debug, Args)]
#[command(
    after_help = ELIGIBILITY_EXAMPLES,
    group = ArgGroup::new("wanted").args(["enable", "disable"]).required(true)
)]
pub struct Eligibility {
    /// The node, or the start of its id
    pub id: String,
    /// New allocations may be placed on it
    #[arg(long)]
    pub enable: bool,
    /// No new allocations are placed on it; those that run there go on
    #[arg(long)]
    pub disable: bool,
}

const ELIGIBILITY_EXAMPLES: &str = "\
Examples:
  kafila node eligibility -disable 4d2ba53b
  kafila node eligibility -enable 4d2ba53b

Exit codes: 0 set; 1 no such node, several, or the gateway did not answer.";
