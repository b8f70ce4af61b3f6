//! `kafila dev`

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;

#[derive(Clone, Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Dev {
    /// Directory for state and allocations, kept across restarts. Without it, all state is lost and
    /// all tasks are stopped on exit
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// Run this job file on start; repeatable
    #[arg(long, value_name = "FILE")]
    pub job: Vec<PathBuf>,
    /// Listen address of the gateway
    #[arg(long, value_name = "IP:PORT", default_value = "127.0.0.1:4646", value_parser = super::values::listen)]
    pub listen: SocketAddr,
    /// Allow an address beyond loopback in -listen: each machine that reaches it controls the cluster,
    /// and runs commands as this user
    #[arg(long)]
    pub dangerously_expose_plaintext: bool,
    /// Number of nodes
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = super::values::nodes)]
    pub nodes: u16,
    /// Settings of the nodes: a settings file of client-node, without the keys that this command sets itself
    #[arg(long, value_name = "FILE")]
    pub node_config: Option<PathBuf>,
    /// Log filter, for example info or info,store=debug
    #[arg(long, value_name = "FILTER", default_value = "warn")]
    pub log: String,
}

const EXAMPLES: &str = "\
Runs all services, a store and a node in this process. Ctrl-C stops it: with -data-dir, jobs are kept
and tasks continue to run; without it, tasks are stopped.

Examples:
  kafila dev
  kafila dev -job examples/web.hcl
  kafila dev -data-dir ~/.kafila -nodes 3
  kafila dev -node-config node.toml        host volumes, options of drivers and the like";
