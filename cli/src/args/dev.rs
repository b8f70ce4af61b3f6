//! What `kafila dev` can be told.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;

#[derive(Clone, Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Dev {
    /// Keep jobs and what they run in this folder, for the next start; without it everything is
    /// forgotten, and tasks are stopped, when it ends
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// Run this job file once everything is up; repeatable
    #[arg(long, value_name = "FILE")]
    pub job: Vec<PathBuf>,
    /// Where the gateway answers
    #[arg(long, value_name = "IP:PORT", default_value = "127.0.0.1:4646", value_parser = super::listen)]
    pub listen: SocketAddr,
    /// How many nodes to run
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=100))]
    pub nodes: u16,
    /// What to log, as in info or info,store=debug
    #[arg(long, value_name = "FILTER", default_value = "warn")]
    pub log: String,
}

const EXAMPLES: &str = "\
Runs every service and a node in this process, over a store of its own: nothing else is needed.
Ctrl-C ends it: jobs are kept and tasks go on with -data-dir, and are stopped without.

Examples:
  kafila dev
  kafila dev -job examples/web.hcl
  kafila dev -data-dir ~/.kafila -nodes 3";
